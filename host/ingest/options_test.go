package ingest

import (
	"strings"
	"testing"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"

	"github.com/apache/arrow-go/v18/arrow"
)

func typeName(dt arrow.DataType) string { return coltype.String(dt) }

// covers A16, A17: the prefix is part of the name, and what has no effect is refused.
func TestOptionsAreCheckedByName(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		set  string
		code string
		says string
	}{
		{CloudFiles, "maxFilesPerTrigger=10", "CF_UNPREFIXED_OPTION", "cloudFiles.maxFilesPerTrigger"},
		{CloudFiles, "MAXFILESPERTRIGGER=10", "CF_UNPREFIXED_OPTION", "cloudFiles.maxFilesPerTrigger"},
		{CloudFiles, "schemaHints=a INT", "CF_UNPREFIXED_OPTION", "cloudFiles.schemaHints"},
		{CloudFiles, "cloudFiles.maxFilesPerTrigger=10", "", ""},
		{CloudFiles, "cloudFiles.rescuedDataColumn=r", "", ""},
		{CloudFiles, "rescuedDataColumn=r", "", ""},
		{CloudFiles, "cloudFiles.pathGlobFilter=*.json", "CF_PREFIXED_OPTION", "Write pathGlobFilter"},
		{ReadFiles, "maxFilesPerTrigger=10", "", ""},
		{ReadFiles, "cloudFiles.maxFilesPerTrigger=10", "CF_PREFIXED_OPTION", "Write maxFilesPerTrigger"},
		{ReadFiles, "maxFilePerTrigger=10", "UNKNOWN_OPTION", "Did you mean maxFilesPerTrigger?"},
		{CloudFiles, "cloudFiles.schemaHint=a INT", "UNKNOWN_OPTION", "Did you mean cloudFiles.schemaHints?"},
		{ReadFiles, "colour=red", "UNKNOWN_OPTION", "colour"},
		{ReadFiles, "sep=;", "UNKNOWN_OPTION", "json"},
		{ReadFiles, "maxFilesPerTrigger=0", "INVALID_OPTION_VALUE", "at least 1"},
		{ReadFiles, "maxFilesPerTrigger=many", "INVALID_OPTION_VALUE", "many"},
		{ReadFiles, "maxBytesPerTrigger=10q", "INVALID_OPTION_VALUE", "10q"},
		{ReadFiles, "multiLine=yes", "INVALID_OPTION_VALUE", "true or false"},
		{ReadFiles, "mode=STRICT", "INVALID_OPTION_VALUE", "PERMISSIVE"},
		{ReadFiles, "schemaEvolutionMode=always", "INVALID_OPTION_VALUE", "addNewColumns"},
		{ReadFiles, "schemaEvolutionMode=addNewColumnsWithTypeWidening", "NOT_SUPPORTED", "addNewColumnsWithTypeWidening"},
		{ReadFiles, "useNotifications=true", "NOT_SUPPORTED", "useNotifications"},
		{ReadFiles, "useNotifications=false", "", ""},
		{ReadFiles, "allowOverwrites=true", "NOT_SUPPORTED", "allowOverwrites"},
		{CloudFiles, "cloudFiles.schemaLocation=/x", "", ""},
		{CloudFiles, "schemaLocation=/x", "CF_UNPREFIXED_OPTION", "cloudFiles.schemaLocation"},
		{CloudFiles, "cloudFiles.region=eu-west-1", "NOT_SUPPORTED", "cloudFiles.region"},
		{CloudFiles, "databricks.serviceCredential=x", "NOT_SUPPORTED", "databricks.serviceCredential"},
		{ReadFiles, "badRecordsPath=/x", "NOT_SUPPORTED", "rescued data column"},
		{ReadFiles, "encoding=latin1", "UNSUPPORTED_ENCODING", "latin1"},
		{ReadFiles, "encoding=UTF-8", "", ""},
		{ReadFiles, "timeZone=Mars/Olympus", "INVALID_OPTION_VALUE", "Mars"},
		{ReadFiles, "dateFormat=qq", "INVALID_DATETIME_PATTERN", "qq"},
		{ReadFiles, "pathGlobFilter=[", "INVALID_GLOB", "["},
		{ReadFiles, "modifiedAfter=yesterday", "INVALID_OPTION_VALUE", "yesterday"},
		{ReadFiles, "schema=a WHAT", "UNSUPPORTED_DATATYPE", "WHAT"},
		{ReadFiles, "schema=_rescued_data INT", "INVALID_OPTION_VALUE", "STRING"},
		{ReadFiles, "schema=__weir_row INT", "INVALID_SCHEMA", "hidden"},
		{ReadFiles, "schema=a TIME", "NOT_SUPPORTED", "time"},
		{ReadFiles, "schema=m MAP<INT,INT>", "NOT_SUPPORTED", "STRING keys"},
		{ReadFiles, "schemaHints=a UINT8", "NOT_SUPPORTED", "uint8"},
		{ReadFiles, "rescuedDataColumn=", "INVALID_OPTION_VALUE", "name"},
	} {
		t.Run(c.set, func(t *testing.T) {
			format := "format"
			if c.kind == CloudFiles {
				format = "cloudFiles.format"
			}
			_, err := Parse(c.kind, "/landing", opts(format+"=json", c.set), Env{})
			if fault.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want %s with %q", err, c.code, c.says)
			}
		})
	}
}

func TestOptionsThatDoNotGoTogether(t *testing.T) {
	for _, c := range []struct {
		set  []string
		code string
	}{
		{[]string{"format=json", "FORMAT=csv"}, "DUPLICATE_OPTION"},
		{[]string{"format=csv", "pathGlobFilter=*", "fileNamePattern=*"}, "INVALID_OPTION_VALUE"},
		{[]string{"format=json", "schema=a INT", "schemaEvolutionMode=addNewColumns"}, "INVALID_OPTION_VALUE"},
		{[]string{"format=json", "schema=a INT", "schemaHints=a INT"}, "INVALID_OPTION_VALUE"},
		{[]string{"format=csv", "sep=\""}, "INVALID_OPTION_VALUE"},
		{[]string{"format=csv", "schema=a ARRAY<INT>"}, "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"},
		{[]string{}, "MISSING_OPTION"},
		{[]string{"format=parquet"}, "UNSUPPORTED_FORMAT"},
		{[]string{"format=binaryfile"}, "UNSUPPORTED_FORMAT"},
		{[]string{"format=jsn"}, "UNSUPPORTED_FORMAT"},
		{[]string{"format=csv", "allowComments=true"}, "UNKNOWN_OPTION"},
	} {
		if _, err := Parse(ReadFiles, "/landing", opts(c.set...), Env{}); fault.CodeOf(err) != c.code {
			t.Errorf("%v: %v, want %s", c.set, err, c.code)
		}
	}
	if _, err := Parse(ReadFiles, " ", opts("format=json"), Env{}); fault.CodeOf(err) != "MISSING_PATH" {
		t.Error(err)
	}
	if _, err := Parse(ReadFiles, "s3://bucket/x", opts("format=json"), Env{}); fault.CodeOf(err) != "NOT_SUPPORTED" {
		t.Error(err)
	}
}

// Every option is implemented or refused with a reason.
func TestEveryOptionIsDecided(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range options {
		if (o.set == nil) == (o.refused == "") {
			t.Errorf("%s is neither applied nor refused, or both", o.name)
		}
		if seen[strings.ToLower(o.name)] {
			t.Errorf("%s stands twice", o.name)
		}
		seen[strings.ToLower(o.name)] = true
	}
}

// covers A11, A16, A30, A34: the defaults.
func TestDefaultsOfASource(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		set    []string
		evolve evolution
		infer  bool
		rescue string
	}{
		{CloudFiles, []string{"cloudFiles.format=json"}, addNewColumns, false, "_rescued_data"},
		{ReadFiles, []string{"format=json"}, addNewColumns, true, "_rescued_data"},
		{ReadFiles, []string{"format=json", "schemaHints=a INT"}, addNewColumns, true, "_rescued_data"},
		{ReadFiles, []string{"format=json", "schema=a INT"}, noEvolution, true, ""},
		{ReadFiles, []string{"format=json", "schema=a INT, _rescued_data STRING"}, noEvolution, true, "_rescued_data"},
		{ReadFiles, []string{"format=json", "schema=a INT", "rescuedDataColumn=r"}, noEvolution, true, "r"},
		{ReadFiles, []string{"format=json", "schema=a INT, r STRING", "rescuedDataColumn=r"}, noEvolution, true, "r"},
	} {
		s, err := Parse(c.kind, "/landing", opts(c.set...), Env{})
		if err != nil {
			t.Fatal(err)
		}
		if s.config.evolve != c.evolve || s.config.inferTypes != c.infer || s.RescuedColumn() != c.rescue {
			t.Errorf("%v: %s %v %q", c.set, s.config.evolve, s.config.inferTypes, s.RescuedColumn())
		}
		if s.Limits() != (Limits{MaxFiles: 1000}) {
			t.Error(s.Limits())
		}
		if (len(s.Warnings()) > 0) != (c.rescue == "") {
			t.Errorf("%v: %v", c.set, s.Warnings())
		}
	}
	// covers A14: inside a pipeline the schema location is managed; naming one is told, not obeyed.
	managed, err := Parse(CloudFiles, "/landing", opts("cloudFiles.format=json", "cloudFiles.schemaLocation=/x"), Env{})
	if err != nil || len(managed.Warnings()) != 1 || !strings.Contains(managed.Warnings()[0], "SCHEMA_LOCATION_UNUSED") {
		t.Fatal(err, managed.Warnings())
	}
	s, err := Parse(ReadFiles, "/landing", opts("format=json", "maxFilesPerTrigger=5", "maxBytesPerTrigger=10g"), Env{})
	if err != nil || s.Limits() != (Limits{5, 10 << 30}) {
		t.Fatal(err, s.Limits())
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("cloudFiles.maxFilesPerTrigger", "10", "/a/*/b")
	f.Add("schemaHints", "a.b STRUCT<c: INT>", "x{a,b}[^c]")
	f.Add("timestampFormat", "yyyy-MM-dd'T'HH:mm[:ss][.SSS]XXX", "\\")
	f.Add("modifiedAfter", "2026-01-01 00:00:00 Europe/Berlin", "{")
	f.Fuzz(func(t *testing.T, name, value, path string) {
		for _, kind := range []Kind{CloudFiles, ReadFiles} {
			for _, format := range []string{"json", "csv"} {
				set := map[string]string{name: value, "format": format}
				if kind == CloudFiles {
					set = map[string]string{name: value, "cloudFiles.format": format}
				}
				if _, err := Parse(kind, path, set, Env{Dir: "/"}); err != nil && fault.CodeOf(err) == "" {
					t.Fatalf("an error without a code: %v", err)
				}
			}
		}
	})
}
