package ingest

import (
	"strconv"
	"strings"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// class says where an option is written with the prefix and for which formats it is.
type class int

const (
	loader   class = iota // Auto Loader's own: prefixed in cloudFiles, bare in read_files
	generic               // every reader's: bare in both
	jsonOnly              // bare
	csvOnly               // bare
	textual               // JSON and CSV, bare
)

// option is one option of the reader: either set applies it or refused says why not.
type option struct {
	name  string
	class class
	// set applies a value; its error message is completed with the option's name.
	set func(c *config, value string) error
	// refused is why the option is not supported; settings of it in fine are accepted
	// since they ask for what happens anyway.
	refused string
	fine    []string
}

func flag(dst func(*config) *bool) func(*config, string) error {
	return func(c *config, v string) (err error) {
		*dst(c), err = boolean(v)
		return err
	}
}

func boolean(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fault.New("INVALID_OPTION_VALUE", "must be true or false, not %q", v)
}

func stringTo(dst func(*config) *string) func(*config, string) error {
	return func(c *config, v string) error {
		*dst(c) = v
		return nil
	}
}

func oneByte(dst func(*config) *byte) func(*config, string) error {
	return func(c *config, v string) error {
		switch len(v) {
		case 0:
			*dst(c) = 0
		case 1:
			*dst(c) = v[0]
		default:
			return fault.New("INVALID_OPTION_VALUE", "must be one ASCII character, not %q", v)
		}
		return nil
	}
}

func atLeast(least int, dst func(*config) *int) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fault.New("INVALID_OPTION_VALUE", "must be a whole number of at least %d, not %q", least, v)
		}
		*dst(c) = n
		return nil
	}
}

func oneOf[T ~string](dst func(*config) *T, values ...T) func(*config, string) error {
	return func(c *config, v string) error {
		for _, w := range values {
			if strings.EqualFold(string(w), v) {
				*dst(c) = w
				return nil
			}
		}
		return fault.New("INVALID_OPTION_VALUE", "must be one of %v, not %q", values, v)
	}
}

func datePattern(name string, dst func(*config) **pattern) func(*config, string) error {
	return func(c *config, v string) (err error) {
		*dst(c), err = parsePattern(name, v)
		return err
	}
}

func ddl(dst func(*config) *[]coltype.Field) func(*config, string) error {
	return func(c *config, v string) error {
		fields, err := coltype.ParseDDL(v)
		*dst(c) = fields
		return err
	}
}

const notYet = "is not supported yet"

// options are all options of Auto Loader, of Spark's file sources and of its
// JSON and CSV readers.
var options = []option{
	// Auto Loader.
	{name: "format", class: loader, set: func(c *config, v string) error { return nil }},
	{name: "schemaEvolutionMode", class: loader, set: func(c *config, v string) error {
		if strings.EqualFold(v, "addNewColumnsWithTypeWidening") {
			return fault.New("NOT_SUPPORTED", "addNewColumnsWithTypeWidening %s", notYet)
		}
		return oneOf(func(c *config) *evolution { return &c.evolve }, addNewColumns, rescueColumns, failOnNewColumns, noEvolution)(c, v)
	}},
	{name: "schemaHints", class: loader, set: ddl(func(c *config) *[]coltype.Field { return &c.hints })},
	{name: "inferColumnTypes", class: loader, set: flag(func(c *config) *bool { return &c.inferTypes })},
	{name: "maxFilesPerTrigger", class: loader, set: atLeast(1, func(c *config) *int { return &c.limits.MaxFiles })},
	{name: "maxBytesPerTrigger", class: loader, set: func(c *config, v string) (err error) {
		c.limits.MaxBytes, err = byteCount(v)
		return err
	}},
	{name: "partitionColumns", class: loader, set: func(c *config, v string) error {
		c.partitionsSet = true
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				c.partitions = append(c.partitions, name)
			}
		}
		return nil
	}},
	{name: "includeExistingFiles", class: loader, fine: []string{"true"}, refused: notYet + "; files that are there at the first start are always read"},
	{name: "allowOverwrites", class: loader, fine: []string{"false"}, refused: notYet + "; a path is read once"},
	{name: "validateOptions", class: loader, fine: []string{"true"}, refused: "is not supported: options are always checked"},
	{name: "useStrictGlobber", class: loader, fine: []string{"true"}, refused: "is not supported: * never crosses a folder"},
	{name: "useIncrementalListing", class: loader, fine: []string{"false"}, refused: "is deprecated and not supported: a late file with an older name must be found"},
	{name: "useNotifications", class: loader, fine: []string{"false"}, refused: notYet},
	{name: "useManagedFileEvents", class: loader, fine: []string{"false"}, refused: notYet},
	{name: "listOnStart", class: loader, fine: []string{"true"}, refused: notYet},
	{name: "schemaLocation", class: loader, set: func(c *config, _ string) error {
		c.warnings = append(c.warnings, "[SCHEMA_LOCATION_UNUSED] schemaLocation has no effect: the pipeline keeps the schema versions of each flow itself, never shared")
		return nil
	}},
	{name: "backfillInterval", class: loader, refused: notYet + "; every run lists the whole folder"},
	{name: "maxFileAge", class: loader, refused: notYet + "; file state is kept for ever"},
	{name: "cleanSource", class: loader, fine: []string{"OFF"}, refused: notYet},
	{name: "cleanSource.retentionDuration", class: loader, refused: notYet},
	{name: "cleanSource.moveDestination", class: loader, refused: notYet},
	{name: "fetchParallelism", class: loader, refused: notYet},
	{name: "pathRewrites", class: loader, refused: notYet},
	{name: "resourceTag", class: loader, refused: notYet},
	{name: "resourceTags", class: loader, refused: notYet},
	{name: "region", class: loader, refused: notYet},
	{name: "queueUrl", class: loader, refused: notYet},
	{name: "awsAccessKey", class: loader, refused: notYet},
	{name: "awsSecretKey", class: loader, refused: notYet},
	{name: "roleArn", class: loader, refused: notYet},
	{name: "roleExternalId", class: loader, refused: notYet},
	{name: "roleSessionName", class: loader, refused: notYet},
	{name: "stsEndpoint", class: loader, refused: notYet},
	{name: "resourceGroup", class: loader, refused: notYet},
	{name: "subscriptionId", class: loader, refused: notYet},
	{name: "clientId", class: loader, refused: notYet},
	{name: "clientSecret", class: loader, refused: notYet},
	{name: "connectionString", class: loader, refused: notYet},
	{name: "tenantId", class: loader, refused: notYet},
	{name: "queueName", class: loader, refused: notYet},
	{name: "projectId", class: loader, refused: notYet},
	{name: "client", class: loader, refused: notYet},
	{name: "clientEmail", class: loader, refused: notYet},
	{name: "privateKey", class: loader, refused: notYet},
	{name: "privateKeyId", class: loader, refused: notYet},
	{name: "subscription", class: loader, refused: notYet},
	{name: "databricks.serviceCredential", class: generic, refused: notYet},

	// Every file source.
	{name: "schema", class: generic, set: ddl(func(c *config) *[]coltype.Field { return &c.schema })},
	{name: "rescuedDataColumn", class: generic, set: func(c *config, v string) error {
		if v == "" {
			return fault.New("INVALID_OPTION_VALUE", "must name a column")
		}
		c.rescued, c.rescuedSet = v, true
		return nil
	}},
	{name: "pathGlobFilter", class: generic, set: setGlob},
	{name: "fileNamePattern", class: generic, set: setGlob},
	{name: "recursiveFileLookup", class: generic, set: flag(func(c *config) *bool { return &c.recursive })},
	{name: "modifiedAfter", class: generic, set: instantOption(func(c *config) *int64 { return &c.after })},
	{name: "modifiedBefore", class: generic, set: instantOption(func(c *config) *int64 { return &c.before })},
	{name: "ignoreCorruptFiles", class: generic, set: flag(func(c *config) *bool { return &c.ignoreCorrupt })},
	{name: "ignoreMissingFiles", class: generic, set: flag(func(c *config) *bool { return &c.ignoreMissing })},
	{name: "badRecordsPath", class: generic, refused: "is not supported: bad records go to the rescued data column"},
	{name: "maxRecordBytes", class: generic, set: func(c *config, v string) error {
		n, err := byteCount(v)
		if err == nil && (n < 1<<10 || n > 1<<30) {
			err = fault.New("INVALID_OPTION_VALUE", "must be between 1k and 1g")
		}
		c.maxRecordBytes = int(n)
		return err
	}},

	// JSON and CSV.
	{name: "mode", class: textual, set: oneOf(func(c *config) *parseMode { return &c.mode }, permissive, dropMalformed, failFast)},
	{name: "columnNameOfCorruptRecord", class: textual, set: stringTo(func(c *config) *string { return &c.corrupt })},
	{name: "readerCaseSensitive", class: textual, set: flag(func(c *config) *bool { return &c.caseSensitive })},
	{name: "multiLine", class: textual, set: flag(func(c *config) *bool { return &c.multiLine })},
	{name: "dateFormat", class: textual, set: datePattern("dateFormat", func(c *config) **pattern { return &c.date })},
	{name: "timestampFormat", class: textual, set: datePattern("timestampFormat", func(c *config) **pattern { return &c.timestamp })},
	{name: "timestampNTZFormat", class: textual, set: datePattern("timestampNTZFormat", func(c *config) **pattern { return &c.ntz })},
	{name: "timeZone", class: textual, set: func(c *config, v string) error {
		zone, ok := location(v)
		if !ok {
			return fault.New("INVALID_OPTION_VALUE", "%q is no time zone", v)
		}
		c.zone = zone
		return nil
	}},
	{name: "encoding", class: textual, set: encodingOption},
	{name: "charset", class: textual, set: encodingOption},
	{name: "lineSep", class: textual, fine: []string{"\n", "\r\n", "\r"}, refused: "is not supported: lines end with \\n, \\r\\n or \\r"},
	{name: "locale", class: textual, fine: []string{"en-US"}, refused: notYet + " but for en-US"},
	{name: "samplingRatio", class: textual, fine: []string{"1.0", "1"}, refused: notYet + "; every sampled record is looked at"},
	{name: "compression", class: textual, fine: []string{"gzip", "none", "uncompressed"}, refused: "is not supported: gzip is recognised by the file itself"},
	{name: "mergeSchema", class: textual, fine: []string{"true"}, refused: "is not supported: the schemas of the files are always merged"},
	{name: "singleVariantColumn", class: textual, refused: notYet},
	{name: "enableDateTimeParsingFallback", class: textual, refused: notYet},

	// JSON.
	{name: "allowBackslashEscapingAnyCharacter", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.backslashAny })},
	{name: "allowComments", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.comments })},
	{name: "allowNonNumericNumbers", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.nonNumeric })},
	{name: "allowNumericLeadingZeros", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.leadingZeros })},
	{name: "allowSingleQuotes", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.singleQuotes })},
	{name: "allowUnquotedControlChars", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.controlChars })},
	{name: "allowUnquotedFieldNames", class: jsonOnly, set: flag(func(c *config) *bool { return &c.json.unquotedNames })},
	{name: "dropFieldIfAllNull", class: jsonOnly, set: flag(func(c *config) *bool { return &c.dropAllNull })},
	{name: "inferTimestamp", class: jsonOnly, set: flag(func(c *config) *bool { return &c.inferTimestamp })},
	{name: "prefersDecimal", class: jsonOnly, set: flag(func(c *config) *bool { return &c.prefersDecimal })},
	{name: "primitivesAsString", class: jsonOnly, set: flag(func(c *config) *bool { return &c.primitivesAsString })},

	// CSV.
	{name: "sep", class: csvOnly, set: separatorOption},
	{name: "delimiter", class: csvOnly, set: separatorOption},
	{name: "quote", class: csvOnly, set: oneByte(func(c *config) *byte { return &c.csv.quote })},
	{name: "escape", class: csvOnly, set: oneByte(func(c *config) *byte { return &c.csv.escape })},
	{name: "charToEscapeQuoteEscaping", class: csvOnly, set: oneByte(func(c *config) *byte { return &c.csv.escapeEscape })},
	{name: "comment", class: csvOnly, set: oneByte(func(c *config) *byte { return &c.csv.comment })},
	{name: "header", class: csvOnly, set: func(c *config, v string) (err error) {
		c.headerSet = true
		c.csv.header, err = boolean(v)
		return err
	}},
	{name: "inferSchema", class: csvOnly, refused: "is not supported here: set inferColumnTypes"},
	{name: "nullValue", class: csvOnly, set: stringTo(func(c *config) *string { return &c.csv.null })},
	{name: "emptyValue", class: csvOnly, set: stringTo(func(c *config) *string { return &c.csv.empty })},
	{name: "nanValue", class: csvOnly, set: stringTo(func(c *config) *string { return &c.csv.nan })},
	{name: "positiveInf", class: csvOnly, set: stringTo(func(c *config) *string { return &c.csv.posInf })},
	{name: "negativeInf", class: csvOnly, set: stringTo(func(c *config) *string { return &c.csv.negInf })},
	{name: "ignoreLeadingWhiteSpace", class: csvOnly, set: flag(func(c *config) *bool { return &c.csv.trimLeft })},
	{name: "ignoreTrailingWhiteSpace", class: csvOnly, set: flag(func(c *config) *bool { return &c.csv.trimRight })},
	{name: "preferDate", class: csvOnly, set: flag(func(c *config) *bool { return &c.csv.preferDate })},
	{name: "skipRows", class: csvOnly, set: atLeast(0, func(c *config) *int { return &c.csv.skipRows })},
	{name: "maxColumns", class: csvOnly, set: atLeast(1, func(c *config) *int { return &c.csv.maxColumns })},
	{name: "maxCharsPerColumn", class: csvOnly, set: atLeast(-1, func(c *config) *int { return &c.csv.maxChars })},
	{name: "unescapedQuoteHandling", class: csvOnly, fine: []string{"STOP_AT_DELIMITER"}, refused: notYet + " but for STOP_AT_DELIMITER"},
	// Auto Loader ignores it too: headers are always honoured.
	{name: "enforceSchema", class: csvOnly, set: func(*config, string) error { return nil }},
	{name: "parserCaseSensitive", class: csvOnly, refused: "is deprecated and not supported: use readerCaseSensitive"},
	{name: "inputBufferSize", class: csvOnly, refused: "is not supported: buffers size themselves"},
}

func setGlob(c *config, v string) (err error) {
	if c.glob != nil {
		return fault.New("INVALID_OPTION_VALUE", "pathGlobFilter and fileNamePattern are the same option")
	}
	c.glob, err = parseGlob(v)
	return err
}

func instantOption(dst func(*config) *int64) func(*config, string) error {
	return func(c *config, v string) error {
		t, ok := parseTimestamp([]byte(v))
		if !ok {
			return fault.New("INVALID_OPTION_VALUE", "must be a timestamp such as 2026-07-28T00:00:00, not %q", v)
		}
		*dst(c) = t.instant(c.zone)
		return nil
	}
}

func encodingOption(_ *config, v string) error {
	if s := strings.ToUpper(v); s != "UTF-8" && s != "UTF8" && s != "US-ASCII" {
		return fault.New("UNSUPPORTED_ENCODING", "%q is not supported; files are read as UTF-8", v)
	}
	return nil
}

func separatorOption(c *config, v string) error {
	v = strings.NewReplacer(`\t`, "\t", `\\`, `\`).Replace(v)
	if v == "" || strings.ContainsAny(v, "\r\n") {
		return fault.New("INVALID_OPTION_VALUE", "must be at least one character and no line end")
	}
	c.csv.sep = v
	return nil
}

// byteCount reads 1000, 64k, 10g, 10gb.
func byteCount(v string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(v))
	s = strings.TrimSuffix(s, "b")
	shift := 0
	if n := len(s); n > 0 {
		if k := strings.IndexByte("kmgt", s[n-1]); k >= 0 {
			shift = 10 * (k + 1)
			s = s[:n-1]
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 1 || n > (1<<62)>>shift {
		return 0, fault.New("INVALID_OPTION_VALUE", "must be a number of bytes such as 1000, 64m or 10g, not %q", v)
	}
	return n << shift, nil
}
