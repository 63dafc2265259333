package delta

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/weir-data/weir/host/fault"
)

// nested has fields in every place where column mapping must name them.
var nested = arrow.NewSchema([]arrow.Field{
	{Name: "p", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "st", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "a b", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "in", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true})})},
	{Name: "list", Nullable: true, Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int32, Nullable: true}))},
	{Name: "map", Nullable: true, Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.StructOf(arrow.Field{Name: "z", Type: arrow.PrimitiveTypes.Int32, Nullable: true}))},
}, nil)

const nestedRows = `[
	{"p":"one","id":1,"st":{"a b":10,"in":{"x":"u"}},"list":[{"y":1},null,{"y":3}],"map":[{"key":"k","value":{"z":7}}]},
	{"p":null,"id":2,"st":{"a b":null,"in":null},"list":[],"map":null},
	{"p":"one","id":3,"st":null,"list":null,"map":[]}]`

func mappedTable(t *testing.T, mode string) *fixture {
	f := newFixture(t)
	opt := WriteOptions{Schema: nested, PartitionBy: []string{"p"}, Name: "n", Properties: map[string]string{"delta.columnMapping.mode": mode}}
	f.commit(Commit{Schema: nested, PartitionBy: opt.PartitionBy, Properties: opt.Properties, Add: f.write(opt, nestedRows)})
	return f
}

// TestMappedTablesNameEverythingPhysically looks at what a table of either mode
// has under the names that outlive a rename: Parquet columns with field ids,
// partition values, directories and statistics.
func TestMappedTablesNameEverythingPhysically(t *testing.T) {
	for _, mode := range []string{"name", "id"} {
		t.Run(mode, func(t *testing.T) {
			f := mappedTable(t, mode)
			unmapped := newFixture(t)
			unmapped.commit(Commit{Schema: nested, Add: unmapped.write(WriteOptions{Schema: nested, Name: "n"}, nestedRows)})
			if got, want := f.rows(), unmapped.rows(); !slices.Equal(got, want) {
				t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			s := f.snapshot()
			p := s.Protocol()
			if p.MinReaderVersion != 3 || !slices.Contains(p.ReaderFeatures, "columnMapping") || !slices.Contains(p.WriterFeatures, "columnMapping") {
				t.Errorf("protocol %+v", p)
			}
			if got := s.Properties()["delta.columnMapping.maxColumnId"]; got != "10" {
				t.Errorf("maxColumnId %s", got)
			}
			ids, names := map[int]bool{}, map[string]bool{}
			physical := map[string]string{}
			eachField(s.schema, nil, func(f *field, path []string) {
				ids[f.fieldID()], names[f.physicalName()] = true, true
				physical[strings.Join(path, "/")] = f.physicalName()
				if !regexp.MustCompile(`^col-[0-9a-f-]{36}$`).MatchString(f.physicalName()) {
					t.Errorf("%s is stored as %q", f.name, f.physicalName())
				}
			})
			if len(ids) != 10 || len(names) != 10 || ids[0] || !ids[10] {
				t.Errorf("ids %v, names %v", ids, names)
			}
			files, err := s.Files(background)
			if err != nil {
				t.Fatal(err)
			}
			for _, add := range files {
				if v, ok := add.PartitionValues[physical["p"]]; !ok || len(add.PartitionValues) != 1 || v != nil && *v != "one" {
					t.Errorf("partition values %v", add.PartitionValues)
				}
				if !strings.HasPrefix(add.Path, physical["p"]+"=") {
					t.Errorf("path %s", add.Path)
				}
				for path, name := range physical {
					inStats := strings.Contains(add.Stats, `"`+name+`":`)
					if want := path != "p" && !strings.Contains(path, "element") && !strings.Contains(path, "value"); inStats != want {
						t.Errorf("%s in statistics: %t\n%s", path, inStats, add.Stats)
					}
				}
				if strings.Contains(add.Stats, `"id"`) {
					t.Errorf("statistics %s", add.Stats)
				}
				f.checkParquetNames(t, s, &add)
			}
		})
	}
}

// checkParquetNames compares a file's Parquet schema with that of the table.
func (f *fixture) checkParquetNames(t *testing.T, s *Snapshot, add *AddFile) {
	t.Helper()
	pf, err := f.table.openParquet(background, add.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer pf.close()
	stored := map[string]int32{}
	var walk func(n schema.Node)
	walk = func(n schema.Node) {
		if n.FieldID() >= 0 && n.Parent() != nil {
			stored[n.Name()] = n.FieldID()
		}
		if g, ok := n.(*schema.GroupNode); ok {
			for i := range g.NumFields() {
				walk(g.Field(i))
			}
		}
	}
	walk(pf.reader.MetaData().Schema.Root())
	want := map[string]int32{}
	eachField(s.schema, nil, func(f *field, _ []string) {
		if !slices.Contains(s.PartitionColumns(), f.name) {
			want[f.physicalName()] = int32(f.fieldID())
		}
	})
	if fmt.Sprint(stored) != fmt.Sprint(want) {
		t.Errorf("Parquet has %v\nwant %v", stored, want)
	}
}

// TestColumnsAreRenamedDroppedAndAddedAgain follows a table from its upgrade on.
// No data file is written for any of it.
func TestColumnsAreRenamedDroppedAndAddedAgain(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: nested, PartitionBy: []string{"p"}, Properties: map[string]string{"delta.dataSkippingStatsColumns": "id,st.`a b`"},
		Add: f.write(WriteOptions{Schema: nested, PartitionBy: []string{"p"}, Name: "n"}, nestedRows)})
	before := f.rows()
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"delta.columnMapping.mode": "name"}})
	if got := f.rows(); !slices.Equal(got, before) {
		t.Errorf("after the upgrade\n%s", strings.Join(got, "\n"))
	}
	f.commit(Commit{Read: f.snapshot(), Change: SchemaChange{
		Rename:   []Rename{{[]string{"p"}, "part"}, {[]string{"st"}, "s"}, {[]string{"st", "a b"}, "ab"}, {[]string{"list", "element", "y"}, "yy"}, {[]string{"map", "value", "z"}, "zz"}},
		Drop:     [][]string{{"st", "in"}},
		Comments: []ColumnComment{{[]string{"st", "a b"}, "once a b"}},
	}})
	s := f.snapshot()
	if got, want := s.schema.sparkName(), "struct<part: string, id: bigint, s: struct<ab: int>, list: array<struct<yy: int>>, map: map<string, struct<zz: int>>>"; got != want {
		t.Errorf("schema %s", got)
	}
	if got := s.Properties()["delta.dataSkippingStatsColumns"]; got != "id,s.ab" || !slices.Equal(s.PartitionColumns(), []string{"part"}) {
		t.Errorf("statistics of %s, partitions %v", got, s.PartitionColumns())
	}
	want := []string{"part=null|id=2|s={ab:null,}|list=[]|map=null|", "part=one|id=1|s={ab:10,}|list=[\"{yy:1,}\" \"null\" \"{yy:3,}\"]|map=[k->{zz:7,}]|", "part=one|id=3|s=null|list=null|map=[]|"}
	if got := f.rows(); !slices.Equal(got, want) {
		t.Errorf("after the renames\n%s", strings.Join(got, "\n"))
	}

	// A column of an old name has nothing of the old values.
	f.commit(Commit{Read: s, Change: SchemaChange{Drop: [][]string{{"ID"}}}})
	wide := arrow.NewSchema(append(f.snapshot().Schema().Fields(), arrow.Field{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true}), nil)
	s = f.snapshot()
	f.commit(Commit{Read: s, Schema: wide, Add: f.write(WriteOptions{Snapshot: s, Schema: wide, Name: "m"}, `[{"part":"two","id":"new","s":{"ab":5}}]`)})
	s = f.snapshot()
	if got, err := scanRows(background, s, ScanOptions{Columns: []string{"id", "s"}}, nil); err != nil || strings.Join(slices.Sorted(slices.Values(got)), " ") != "id=new|s={ab:5,}| id=null|s=null| id=null|s={ab:10,}| id=null|s={ab:null,}|" {
		t.Errorf("%v, %v", got, err)
	}
	if id := s.schema.find("id"); id.fieldID() != 11 || id.physicalName() == "id" || s.Properties()["delta.columnMapping.maxColumnId"] != "11" {
		t.Errorf("id %d, stored as %s", id.fieldID(), id.physicalName())
	}
	if n := s.NumFiles(); n != 3 {
		t.Errorf("%d files", n)
	}
	if got := s.Properties()["delta.dataSkippingStatsColumns"]; got != "s.ab" {
		t.Errorf("statistics of %s", got)
	}
	// A reader that starts from the log alone, and from the older versions, sees the same.
	for v := range int64(4) {
		if _, err := f.reopen().SnapshotAt(background, v); err != nil {
			t.Error(err)
		}
	}
}

func TestSchemaChangesThatCannotBeMadeAreRefusedByName(t *testing.T) {
	mapped := map[string]string{"delta.columnMapping.mode": "name"}
	for name, c := range map[string]struct {
		properties map[string]string
		commit     Commit
		code       string
	}{
		"renaming without mapping":      {nil, Commit{Change: SchemaChange{Rename: []Rename{{[]string{"id"}, "x"}}}}, "DELTA_UNSUPPORTED_RENAME_COLUMN"},
		"dropping without mapping":      {nil, Commit{Change: SchemaChange{Drop: [][]string{{"id"}}}}, "DELTA_UNSUPPORTED_DROP_COLUMN"},
		"a column that is not there":    {mapped, Commit{Change: SchemaChange{Drop: [][]string{{"x"}}}}, "DELTA_COLUMN_NOT_FOUND"},
		"a field that is not there":     {mapped, Commit{Change: SchemaChange{Rename: []Rename{{[]string{"list", "y"}, "x"}}}}, "DELTA_COLUMN_NOT_FOUND"},
		"no path":                       {mapped, Commit{Change: SchemaChange{Drop: [][]string{{}}}}, "DELTA_COLUMN_NOT_FOUND"},
		"an element":                    {mapped, Commit{Change: SchemaChange{Drop: [][]string{{"list", "element"}}}}, "DELTA_UNSUPPORTED_SCHEMA_CHANGE"},
		"a name that is taken":          {mapped, Commit{Change: SchemaChange{Rename: []Rename{{[]string{"id"}, "ST"}}}}, "DELTA_DUPLICATE_COLUMNS_FOUND"},
		"an empty name":                 {mapped, Commit{Change: SchemaChange{Rename: []Rename{{[]string{"id"}, ""}}}}, "DELTA_UNSUPPORTED_RENAME_COLUMN"},
		"the partition column":          {mapped, Commit{Change: SchemaChange{Drop: [][]string{{"p"}}}}, "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"},
		"a struct's only field":         {mapped, Commit{Change: SchemaChange{Drop: [][]string{{"st", "in", "x"}}}}, "DELTA_UNSUPPORTED_DROP_COLUMN"},
		"from name to id":               {mapped, Commit{Properties: map[string]string{"delta.columnMapping.mode": "id"}}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"},
		"back to none":                  {mapped, Commit{Properties: map[string]string{"delta.columnMapping.mode": "none"}}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"},
		"from none to id":               {nil, Commit{Properties: map[string]string{"delta.columnMapping.mode": "id"}}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"},
		"a mode that is none":           {nil, Commit{Properties: map[string]string{"delta.columnMapping.mode": "nome"}}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"},
		"the count of ids":              {nil, Commit{Properties: map[string]string{"delta.columnMapping.maxColumnId": "1"}}, "DELTA_INVALID_PROPERTY"},
		"widening without the property": {nil, Commit{Change: SchemaChange{Widen: []Widening{{[]string{"st", "a b"}, arrow.PrimitiveTypes.Int64}}}}, "DELTA_UNSUPPORTED_SCHEMA_CHANGE"},
		"narrowing": {map[string]string{"delta.enableTypeWidening": "true"}, Commit{Change: SchemaChange{Widen: []Widening{{[]string{"id"}, arrow.PrimitiveTypes.Int32}}}},
			"DELTA_UNSUPPORTED_SCHEMA_CHANGE"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.commit(Commit{Schema: nested, PartitionBy: []string{"p"}, Properties: c.properties})
			c.commit.Read = f.snapshot()
			if _, err := f.table.Commit(background, c.commit); fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
}

func TestClusteringColumnsAreKeptByTheirPhysicalNames(t *testing.T) {
	f := newFixture(t)
	mapped := map[string]string{"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "0"}
	opt := WriteOptions{Schema: nested, ClusterBy: []string{"st.a b"}, Properties: mapped, Name: "n"}
	f.commit(Commit{Schema: nested, ClusterBy: opt.ClusterBy, Properties: mapped, Add: f.write(opt, nestedRows)})
	s := f.snapshot()
	stored := s.schema.find("st").physicalName() + `","` + s.schema.leaf([]string{"st", "a b"}).physicalName()
	if got := s.domains["delta.clustering"].Configuration; got != `{"clusteringColumns":[["`+stored+`"]]}` {
		t.Errorf("domain %s", got)
	}
	f.commit(Commit{Read: s, Change: SchemaChange{Rename: []Rename{{[]string{"st", "a b"}, "ab"}}}})
	s = f.snapshot()
	files := f.write(WriteOptions{Snapshot: s, Name: "m"}, `[{"st":{"ab":5}}]`)
	if got := s.clusterColumns(); !slices.Equal(got, []string{"st.ab"}) || !strings.Contains(files[0].Stats, `"minValues":{"`+strings.ReplaceAll(stored, `","`, `":{"`)+`":5}}`) {
		t.Errorf("clustered by %v, statistics %s", got, files[0].Stats)
	}
	for _, path := range [][]string{{"st"}, {"st", "ab"}} {
		if _, err := f.table.Commit(background, Commit{Read: s, Change: SchemaChange{Drop: [][]string{path}}}); fault.CodeOf(err) != "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN" {
			t.Errorf("dropping %v: %v", path, err)
		}
	}
}

// TestColumnsThatExpressionsNeedStay names columns in constraints and generation expressions.
func TestColumnsThatExpressionsNeedStay(t *testing.T) {
	for expr, want := range map[string]bool{"id > 0": true, "`ID` IS NOT NULL": true, "xid > 0 or id2 < 1 and _id = 1": false, "f(a.id)": true, "": false, "ids": false, "größe_id": false} {
		if mentions(expr, "id") != want {
			t.Errorf("%s: %t", expr, !want)
		}
	}
	r := &revision{conf: map[string]string{"delta.constraints.c": "id > 0"}, schema: &structType{}}
	if err := r.checkDependents(r.schema, "id", "id", nil); fault.CodeOf(err) != "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE" {
		t.Error(err)
	}
	g := &field{name: "g"}
	g.setMeta("delta.generationExpression", "CAST(id AS INT)")
	r = &revision{schema: &structType{[]*field{g}}}
	if err := r.checkDependents(r.schema, "id", "id", nil); fault.CodeOf(err) != "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE" {
		t.Error(err)
	}
}

// TestNotNullComesAndGoes checks the rows there are, those of a file that comes
// in between, and those that come later.
func TestNotNullComesAndGoes(t *testing.T) {
	f := newFixture(t)
	write := func(name, rows string) []AddFile { return f.write(WriteOptions{Schema: nested, Name: name}, rows) }
	f.commit(Commit{Schema: nested, Add: write("a", `[{"id":1,"st":{"a b":1}},{"id":2,"st":null}]`)})
	notNull := func(s *Snapshot, path ...string) error {
		_, err := f.table.Commit(background, Commit{Read: s, Change: SchemaChange{NotNull: [][]string{path}}})
		return err
	}
	s := f.snapshot()
	for path, want := range map[string]string{"p": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "st": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "st/in": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
		"list/element/y": "DELTA_UNSUPPORTED_SCHEMA_CHANGE", "list/element": "DELTA_UNSUPPORTED_SCHEMA_CHANGE", "x": "DELTA_COLUMN_NOT_FOUND"} {
		if err := notNull(s, strings.Split(path, "/")...); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	f.commit(Commit{Read: s, Add: write("b", `[{"id":null,"st":{"a b":1}}]`)})
	if err := notNull(s, "id"); fault.CodeOf(err) != "DELTA_CONCURRENT_APPEND" {
		t.Errorf("beside an append: %v", err)
	}
	if err := notNull(f.snapshot(), "st", "A b"); err != nil {
		t.Errorf("a field of a struct that is null: %v", err)
	}
	s = f.snapshot()
	w, err := f.table.Write(background, WriteOptions{Snapshot: s, Name: "c"})
	if err != nil {
		t.Fatal(err)
	}
	rec := f.batch(nested, `[{"id":3,"st":{"a b":null}}]`)
	defer rec.Release()
	if err := w.Write(background, rec); fault.CodeOf(err) != "DELTA_NOT_NULL_CONSTRAINT_VIOLATED" {
		t.Errorf("a null: %v", err)
	}
	if err := w.Abort(background); err != nil {
		t.Error(err)
	}
	f.commit(Commit{Read: s, Change: SchemaChange{Nullable: [][]string{{"st", "a b"}}}})
	s = f.snapshot()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "c"}, `[{"id":3,"st":{"a b":null}}]`)})
}

// TestMappedTablesWhoseColumnsHaveNoNamesOfTheirOwnAreNotWritten meets logs that no writer should leave.
func TestMappedTablesWhoseColumnsHaveNoNamesOfTheirOwnAreNotWritten(t *testing.T) {
	field := func(name string, meta string) string {
		return fmt.Sprintf(`{"name":%q,"type":"long","nullable":true,"metadata":{%s}}`, name, meta)
	}
	for name, c := range map[string]struct {
		b, code string
	}{
		"as it should be": {`"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"col-2"`, ""},
		"no name":         {`"delta.columnMapping.id":2`, "DELTA_INVALID_SCHEMA"},
		"no id":           {`"delta.columnMapping.physicalName":"col-2"`, "DELTA_INVALID_SCHEMA"},
		"one id":          {`"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-2"`, "DELTA_INVALID_SCHEMA"},
		"one name":        {`"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"col-1"`, "DELTA_INVALID_SCHEMA"},
	} {
		schema := `{"type":"struct","fields":[` + field("a", `"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"`) + "," + field("b", c.b) + `]}`
		tree, err := parseSchema(schema)
		if err != nil {
			t.Fatal(err)
		}
		s := &Snapshot{schema: tree, mapping: "name", metadata: &Metadata{}}
		if _, err := revise(s, &demand{}); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
