package ingest

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// format is how the records of a file are written.
type format string

const (
	formatJSON format = "json"
	formatCSV  format = "csv"
)

// unread are the formats that Auto Loader knows and this package does not read yet.
var unread = []string{"avro", "binaryFile", "orc", "parquet", "text", "xml"}

// parseMode says what a malformed record does.
type parseMode string

const (
	permissive    parseMode = "PERMISSIVE"
	dropMalformed parseMode = "DROPMALFORMED"
	failFast      parseMode = "FAILFAST"
)

// evolution says what a column that the schema lacks does.
type evolution string

const (
	addNewColumns    evolution = "addNewColumns"
	rescueColumns    evolution = "rescue"
	failOnNewColumns evolution = "failOnNewColumns"
	noEvolution      evolution = "none"
)

// config is what the options say.
type config struct {
	format  format
	mode    parseMode
	evolve  evolution
	rescued string // name of the rescued data column, "" for none
	corrupt string // columnNameOfCorruptRecord

	schema                                     []coltype.Field // declared
	hints                                      []coltype.Field
	inferTypes, prefersDecimal, inferTimestamp bool
	primitivesAsString, dropAllNull            bool
	caseSensitive                              bool

	partitions     []string // declared partition columns
	partitionsSet  bool
	glob           *glob
	after, before  int64 // modification time bounds in microseconds
	recursive      bool
	ignoreCorrupt  bool
	ignoreMissing  bool
	limits         Limits
	maxRecordBytes int
	chunkBytes     int // size of the pieces of a file; tests make it small

	zone       *time.Location
	date       *pattern
	timestamp  *pattern
	ntz        *pattern
	json       jsonRules
	csv        csvRules
	multiLine  bool
	warnings   []string
	rescuedSet bool
	headerSet  bool
}

// csvRules are the options of the CSV reader.
type csvRules struct {
	sep                  string
	quote, escape        byte // 0 for none
	escapeEscape         byte
	comment              byte
	header               bool
	null, empty          string
	nan, posInf, negInf  string
	trimLeft, trimRight  bool
	preferDate           bool
	skipRows, maxColumns int
	maxChars             int
}

const prefix = "cloudFiles."

// defaults are what holds before any option is read.
func defaults(kind Kind) *config {
	return &config{
		mode: permissive, rescued: "_rescued_data", corrupt: "_corrupt_record",
		inferTypes: kind == ReadFiles, caseSensitive: true,
		limits: Limits{MaxFiles: 1000}, maxRecordBytes: 64 << 20, chunkBytes: chunkBytes,
		zone: time.UTC,
		json: jsonRules{singleQuotes: true, nonNumeric: true},
		csv: csvRules{
			sep: ",", quote: '"', escape: '\\', nan: "NaN", posInf: "Inf", negInf: "-Inf",
			preferDate: true, maxColumns: 20480, maxChars: -1,
		},
	}
}

// parseOptions reads the options of a source.
func parseOptions(kind Kind, given map[string]string) (*config, error) {
	c := defaults(kind)
	seen := map[string]string{}
	type setting struct {
		opt   *option
		name  string
		value string
	}
	var settings []setting
	// In the order of their names, so that of several mistakes always the same is told.
	for _, name := range sortedKeys(given) {
		opt, err := find(kind, name)
		if err != nil {
			return nil, err
		}
		if twin, ok := seen[opt.name]; ok {
			return nil, fault.New("DUPLICATE_OPTION", "%s and %s are the same option", twin, name)
		}
		seen[opt.name] = name
		settings = append(settings, setting{opt, name, given[name]})
	}
	formatName := written(kind, &options[0])
	value, ok := "", false
	for _, s := range settings {
		if s.opt.name == "format" {
			value, ok = s.value, true
		}
	}
	if !ok {
		return nil, fault.New("MISSING_OPTION", "a file source needs the option %s", formatName).WithHint("Set it to json or csv")
	}
	switch strings.ToLower(value) {
	case "json":
		c.format = formatJSON
	case "csv":
		c.format = formatCSV
	default:
		for _, f := range unread {
			if strings.EqualFold(f, value) {
				return nil, fault.New("UNSUPPORTED_FORMAT", "format %s is not read yet", f).WithHint("json and csv are")
			}
		}
		return nil, fault.New("UNSUPPORTED_FORMAT", "there is no format %q", value).WithHint("json and csv are read")
	}
	// Zone first: the timestamps of other options are read in it.
	slices.SortStableFunc(settings, func(a, b setting) int {
		return b2i(b.opt.name == "timeZone") - b2i(a.opt.name == "timeZone")
	})
	for _, s := range settings {
		if s.opt.class == jsonOnly && c.format != formatJSON || s.opt.class == csvOnly && c.format != formatCSV {
			return nil, fault.New("UNKNOWN_OPTION", "option %s is not one of format %s", s.name, c.format)
		}
		if s.opt.set == nil {
			if !slices.ContainsFunc(s.opt.fine, func(f string) bool { return strings.EqualFold(f, s.value) }) {
				return nil, fault.New("NOT_SUPPORTED", "option %s %s", s.name, s.opt.refused)
			}
			continue
		}
		if err := s.opt.set(c, s.value); err != nil {
			return nil, fault.Wrap(err, fault.CodeOf(err), "option %s", s.name)
		}
	}
	return c, c.settle(kind)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// written is how an option is spelled in a kind of source.
func written(kind Kind, o *option) string {
	if kind == CloudFiles && o.class == loader {
		return prefix + o.name
	}
	return o.name
}

// find looks an option up by the name a user wrote; names are case-insensitive, as in Spark.
func find(kind Kind, name string) (*option, error) {
	bare, prefixed := name, false
	if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
		bare, prefixed = name[len(prefix):], true
	}
	for i := range options {
		o := &options[i]
		if !strings.EqualFold(o.name, bare) {
			continue
		}
		right := written(kind, o)
		switch {
		case kind == CloudFiles && o.class == loader && !prefixed:
			return nil, fault.New("CF_UNPREFIXED_OPTION", "option %s has no effect on a cloudFiles source without its prefix", name).WithHint("Write %s", right)
		// cloudFiles.rescuedDataColumn is a spelling of the field; the others are not.
		case prefixed && (kind == ReadFiles || o.class != loader && o.name != "rescuedDataColumn"):
			return nil, fault.New("CF_PREFIXED_OPTION", "option %s is written without the prefix here", name).WithHint("Write %s", right)
		}
		return o, nil
	}
	err := fault.New("UNKNOWN_OPTION", "there is no option %s", name)
	if near := nearest(kind, bare); near != "" {
		err = err.WithHint("Did you mean %s?", near)
	}
	return nil, err
}

// nearest is the option whose name is closest, if it is close at all.
func nearest(kind Kind, bare string) string {
	best, found := 1+max(2, len(bare)/4), ""
	for i := range options {
		if d := distance(strings.ToLower(bare), strings.ToLower(options[i].name)); d < best {
			best, found = d, written(kind, &options[i])
		}
	}
	return found
}

// distance is the number of edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal + b2i(a[i] != b[j])
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// settle fills what depends on several options and refuses what cannot go together.
func (c *config) settle(kind Kind) error {
	declared := len(c.schema) > 0
	if c.evolve == "" {
		c.evolve = addNewColumns
		if declared {
			c.evolve = noEvolution
		}
	}
	if declared && c.evolve == addNewColumns {
		return fault.New("INVALID_OPTION_VALUE", "schemaEvolutionMode addNewColumns cannot go with a declared schema").
			WithHint("Turn the schema into schemaHints, or use rescue, failOnNewColumns or none")
	}
	if declared && len(c.hints) > 0 {
		return fault.New("INVALID_OPTION_VALUE", "schemaHints correct an inferred schema and cannot go with a declared one")
	}
	if declared {
		if err := c.settleDeclared(); err != nil {
			return err
		}
	}
	if c.csv.header = c.csv.header || !c.headerSet && !declared; c.headerSet && c.format == formatCSV && !c.csv.header && c.csv.skipRows > 0 {
		c.warnings = append(c.warnings, "skipRows without a header leaves out data rows")
	}
	c.json.multiLine = c.multiLine
	if c.csv.quote != 0 && strings.IndexByte(c.csv.sep, c.csv.quote) >= 0 {
		return fault.New("INVALID_OPTION_VALUE", "sep and quote must differ")
	}
	if c.rescued == "" {
		how := "columns that the schema lacks, values that do not fit it and records that cannot be parsed are lost"
		if c.evolve == noEvolution || c.evolve == rescueColumns {
			c.warnings = append(c.warnings, "[NO_RESCUE_COLUMN] schemaEvolutionMode "+string(c.evolve)+" without a rescued data column: "+how+
				"; set rescuedDataColumn or add _rescued_data STRING to the schema")
		} else {
			c.warnings = append(c.warnings, "[NO_RESCUE_COLUMN] no rescued data column: values that do not fit the schema and records that cannot be parsed are lost; set rescuedDataColumn")
		}
	}
	return nil
}

// settleDeclared takes the rescued data column out of a declared schema.
func (c *config) settleDeclared() error {
	var data []coltype.Field
	found := false
	for _, f := range c.schema {
		if len(f.Path) > 1 {
			return fault.New("PARSE_SYNTAX_ERROR", "schema: %s is nested; only schemaHints may name nested fields", f.Name())
		}
		if f.Name() == c.rescued {
			if coltype.String(f.Type) != "string" {
				return fault.New("INVALID_OPTION_VALUE", "schema: the rescued data column %s must be STRING, not %s", c.rescued, coltype.String(f.Type))
			}
			found = true
			continue
		}
		data = append(data, f)
	}
	if !found && !c.rescuedSet {
		c.rescued = ""
	}
	if len(data) == 0 {
		return fault.New("INVALID_OPTION_VALUE", "schema: no data column")
	}
	c.schema = data
	return nil
}
