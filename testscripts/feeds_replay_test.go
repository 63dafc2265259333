package testscripts

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// change is an event as the replay sees it.
type change struct {
	key, kind string // upsert, delete, truncate
	sequence  []any  // texts and numbers; the first that differs decides
	row       map[string]any
}

// replay gives the rows that a source with these changes ends with: each change
// is applied in the order of the sequence, a truncate removes all that was
// before it.
func replay(t *testing.T, changes []change) []map[string]any {
	t.Helper()
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b change) int { return compareSequences(t, a.sequence, b.sequence) })
	live := map[string]change{}
	seen := map[string]change{}
	for _, c := range sorted {
		switch c.kind {
		case "truncate":
			for k, old := range live {
				if compareSequences(t, old.sequence, c.sequence) < 0 {
					delete(live, k)
				}
			}
			continue
		case "delete":
			delete(live, c.key)
		default:
			live[c.key] = c
		}
		if before, ok := seen[c.key]; ok && compareSequences(t, before.sequence, c.sequence) == 0 &&
			(before.kind != c.kind || c.kind != "delete" && !reflect.DeepEqual(before.row, c.row)) {
			t.Fatalf("key %s has two changes at %v: a replay has no order for them", c.key, c.sequence)
		}
		seen[c.key] = c
	}
	var rows []map[string]any
	for _, c := range live {
		rows = append(rows, c.row)
	}
	return rows
}

func compareSequences(t *testing.T, a, b []any) int {
	t.Helper()
	for i := range a {
		var c int
		switch x := a[i].(type) {
		case string:
			c = strings.Compare(x, b[i].(string))
		case float64:
			c = int(max(-1, min(1, x-b[i].(float64))))
		default:
			t.Fatalf("sequence %v", a)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// wantReplayed compares a target with the replay of the changes.
func wantReplayed(t *testing.T, dir, table string, changes []change) {
	t.Helper()
	cmd, _ := weirProcess(t, dir, nil, "query", "SELECT * FROM "+table, "--output", "json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", table, err, &errs)
	}
	count := func(rows []map[string]any) map[string]int {
		n := map[string]int{}
		for _, r := range rows {
			for k, v := range r {
				if v == nil {
					delete(r, k)
				}
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			n[string(text)]++
		}
		return n
	}
	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, row)
	}
	if have, want := count(got), count(replay(t, changes)); !reflect.DeepEqual(have, want) {
		t.Errorf("%s after %d events\n has %v\nwant %v", table, len(changes), have, want)
	}
}

// recordedFeed is what one tool wrote, and how a replay reads it.
type recordedFeed struct {
	target string
	files  []recordedFile
	named  bool // the name of a file is its sequence: it cannot come again under another
	read   func(t *testing.T, text, name string) []change
}

type recordedFile struct{ from, to string }

// land copies a file below landing, without the lines of a text that are no
// events (the licence), and gives its text.
func (f recordedFeed) land(t *testing.T, shared, dir string, n int, prefix string) string {
	t.Helper()
	file := f.files[n]
	text, err := os.ReadFile(filepath.Join(shared, file.from))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file.from, ".txt") {
		var events []string
		for line := range strings.SplitSeq(string(text), "\n") {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") {
				events = append(events, line)
			}
		}
		text = []byte(strings.Join(events, "\n") + "\n")
	}
	to := filepath.Join(filepath.Dir(file.to), prefix+filepath.Base(file.to))
	writeFeedFile(t, dir, filepath.Join("landing", to), text)
	if strings.HasSuffix(file.from, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if text, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return string(text)
}

func recordedFeeds() []recordedFeed {
	paimon := func(to, folder string, names ...string) []recordedFile {
		var files []recordedFile
		for _, n := range names {
			files = append(files, recordedFile{"paimon/kafka/" + folder + "/" + n + ".txt", to + "/" + n + ".json"})
		}
		return files
	}
	var persons []recordedFile
	for _, name := range []string{"20211017-194324349", "20211018-223933563", "20211018-224657689", "20211018-225235856", "20211018-225959941"} {
		persons = append(persons, recordedFile{"aws_dms/persons/" + name + ".csv", "dms/person_cdc/" + name + ".csv"})
	}
	return []recordedFeed{
		{target: "silver.debezium_products", named: true, read: jsonEvents(debeziumEvent),
			files: paimon("debezium", "debezium/table/schemaevolution", "debezium-data-1", "debezium-data-2", "debezium-data-3")},
		{target: "silver.debezium_customers", read: jsonEvents(func(t *testing.T, e map[string]any, _ string) []change {
			line, _ := json.Marshal(e)
			c, ok := connectorEvent(t, string(line), []string{"lsn BIGINT", "ts_us BIGINT"})
			if !ok {
				return nil
			}
			return []change{c}
		}), files: []recordedFile{{"debezium_docs/postgresql.ndjson", "debezium_postgres/1.json"}}},
		{target: "silver.dms_customers", named: true, files: []recordedFile{
			{"aws_dms/customer/Full/Customers_FullLog.csv", "dms/customer/LOAD00000001.csv"},
			{"aws_dms/customer/CDC/2019/01/01/Customer_CDC_Log_File.csv", "dms/customer_cdc/2019/01/01/Customer_CDC_Log_File.csv"},
		}, read: dmsFile("CustomerID", "Email", "LCLid")},
		{target: "silver.dms_persons", named: true, files: persons, read: dmsFile("id", "name", "city", "since")},
		{target: "silver.qlik_sample", files: []recordedFile{
			{"qlik_replicate/ods_qlik/EDW.SAMPLE/LOAD1.csv.gz", "qlik/EDW.SAMPLE/LOAD1.csv.gz"},
			{"qlik_replicate/ods_qlik/EDW.SAMPLE__ct/20211201-122433444.csv.gz", "qlik/EDW.SAMPLE__ct/20211201-122433444.csv.gz"},
		}, read: qlikFile},
		{target: "silver.maxwell_products", read: jsonEvents(maxwellEvent),
			files: paimon("maxwell", "maxwell/table/schemaevolution", "maxwell-data-2", "maxwell-data-3")},
		{target: "silver.canal_rows", read: jsonEvents(canalEvent),
			files: paimon("canal", "canal/table/schemaevolution", "canal-data-1", "canal-data-2", "canal-data-3", "canal-data-4", "canal-data-5")},
		{target: "silver.ogg_products", read: jsonEvents(oggEvent),
			files: paimon("ogg", "ogg/table/schemaevolution", "ogg-data-1", "ogg-data-2", "ogg-data-3")},
		{target: "silver.dms_kafka_products", read: jsonEvents(dmsKafkaEvent),
			files: paimon("dms_kafka", "aws-dms/table/schemaevolution", "aws-dms-data-1", "aws-dms-data-3", "aws-dms-data-4")},
		{target: "silver.aliyun_rows", read: jsonEvents(aliyunEvent),
			files: paimon("aliyun", "aliyun/table/event", "event-insert", "event-update-in-one", "event-delete")},
	}
}

// jsonEvents reads one event a line.
func jsonEvents(event func(t *testing.T, e map[string]any, name string) []change) func(*testing.T, string, string) []change {
	return func(t *testing.T, text, name string) []change {
		t.Helper()
		var changes []change
		for line := range strings.Lines(text) {
			var e map[string]any
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			changes = append(changes, event(t, e, name)...)
		}
		return changes
	}
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// imageOf is the row after the change, or before it.
func imageOf(e map[string]any) map[string]any {
	if m := object(e["after"]); m != nil {
		return m
	}
	return object(e["before"])
}

func keyOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func kindOf(op any, deletes, truncates string) string {
	switch op {
	case deletes:
		return "delete"
	case truncates:
		return "truncate"
	}
	return "upsert"
}

func debeziumEvent(_ *testing.T, e map[string]any, name string) []change {
	row, source := imageOf(e), object(e["source"])
	return []change{{key: keyOf(row["id"]), kind: kindOf(e["op"], "d", "t"), row: row,
		sequence: []any{source["file"], source["pos"], source["row"], source["ts_ms"], name}}}
}

// connectorEvent reads a record with a schema; fields are the parts of the sequence.
func connectorEvent(t *testing.T, line string, fields []string) (change, bool) {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return change{}, false // a line that the page of the connector leaves unfinished
	}
	p := object(e["payload"])
	source := object(p["source"])
	if table, ok := source["table"].(string); ok && !strings.EqualFold(table, "customers") || p["op"] == nil || p["op"] == "m" {
		return change{}, false
	}
	c := change{kind: kindOf(p["op"], "d", "t"), row: map[string]any{}}
	for k, v := range imageOf(p) {
		c.row[strings.ToLower(k)] = v
	}
	c.key = keyOf(c.row["id"])
	for _, f := range fields {
		name, kind, _ := strings.Cut(f, " ")
		v := source[name]
		if text, ok := v.(string); ok && kind != "STRING" {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s of %s: %v", name, line, err)
			}
			v = n
		}
		c.sequence = append(c.sequence, v)
	}
	return c, true
}

func maxwellEvent(_ *testing.T, e map[string]any, _ string) []change {
	row := object(e["data"])
	offset, _ := e["xoffset"].(float64)
	if e["commit"] == true {
		offset = 1e18
	}
	return []change{{key: keyOf(row["id"]), kind: kindOf(e["type"], "delete", ""), row: row, sequence: []any{e["ts"], e["xid"], offset}}}
}

// canalEvent gives a change a row of the array; its values are texts.
func canalEvent(t *testing.T, e map[string]any, _ string) []change {
	t.Helper()
	rows, _ := e["data"].([]any)
	var changes []change
	for i, r := range rows {
		row := map[string]any{}
		for name, v := range object(r) {
			row[name] = v
			if text, ok := v.(string); ok && name != "v1" && name != "v4" {
				n, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				row[name] = n
			}
		}
		changes = append(changes, change{key: keyOf(row["_id"]), kind: kindOf(e["type"], "DELETE", ""), row: row, sequence: []any{e["es"], e["id"], float64(i)}})
	}
	return changes
}

func oggEvent(_ *testing.T, e map[string]any, _ string) []change {
	row := imageOf(e)
	return []change{{key: keyOf(row["id"]), kind: kindOf(e["op_type"], "D", "T"), row: row, sequence: []any{e["pos"]}}}
}

func dmsKafkaEvent(_ *testing.T, e map[string]any, _ string) []change {
	about, row := object(e["metadata"]), object(e["data"])
	for name := range row {
		if strings.HasPrefix(name, "BI_") {
			delete(row, name)
		}
	}
	step := float64(slices.Index([]string{"load", "insert", "update", "delete"}, about["operation"].(string)))
	return []change{{key: keyOf(row["id"]), kind: kindOf(about["operation"], "delete", ""), row: row, sequence: []any{about["timestamp"], step}}}
}

func aliyunEvent(t *testing.T, e map[string]any, _ string) []change {
	t.Helper()
	p := object(e["payload"])
	row := object(imageOf(p)["dataColumn"])
	sequence, err := strconv.ParseInt(p["sequenceId"].(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	val, err := strconv.ParseFloat(row["val"].(string), 64)
	if err != nil {
		t.Fatal(err)
	}
	row["val"], row["create_time"] = val, time.UnixMilli(int64(row["create_time"].(float64))).UTC().Format(time.RFC3339Nano)
	// A float64 holds 19 digits to 256: far less than two sequences differ by.
	// As a text that sorts like the number: a float64 holds too few digits.
	return []change{{key: keyOf(row["id"]), kind: kindOf(p["op"], "DELETE", ""), row: row, sequence: []any{fmt.Sprintf("%020d", uint64(sequence)^1<<63)}}}
}

// dmsFile reads a file of the full load, which may have a line of names, or one of changes.
func dmsFile(columns ...string) func(*testing.T, string, string) []change {
	return func(t *testing.T, text, name string) []change {
		t.Helper()
		var changes []change
		for _, r := range csvRecords(t, text) {
			c := change{kind: "upsert", sequence: []any{""}, row: map[string]any{}}
			if !strings.HasPrefix(name, "LOAD") {
				c.kind, c.sequence, r = kindOf(r[0], "D", ""), []any{name}, r[1:]
			} else if r[0] == columns[0] {
				continue
			}
			for i, column := range columns {
				c.row[column] = r[i]
			}
			if n, err := strconv.ParseFloat(r[0], 64); err == nil {
				c.row[columns[0]] = n
			}
			c.key = r[0]
			changes = append(changes, c)
		}
		return changes
	}
}

func qlikFile(t *testing.T, text, name string) []change {
	t.Helper()
	var changes []change
	for _, r := range csvRecords(t, text)[1:] {
		c := change{kind: "upsert", sequence: []any{""}}
		if !strings.HasPrefix(name, "LOAD") {
			c.kind, c.sequence = kindOf(r[1], "D", ""), []any{r[0]}
			if r[1] == "B" {
				continue
			}
			r = r[3:]
		}
		id, err := strconv.ParseFloat(r[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		c.key, c.row = r[0], map[string]any{"SAMPLE_ID": id, "SAMPLE_NAME": r[1], "EDW_INSERTED_DTM": microseconds(t, r[2]), "EDW_UPDATED_DTM": microseconds(t, r[3])}
		changes = append(changes, c)
	}
	return changes
}

func microseconds(t *testing.T, text string) string {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05.9999999", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

func csvRecords(t *testing.T, text string) [][]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}
