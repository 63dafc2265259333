package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/runtime/plugin"
)

func pluginCheckCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "load a module, call its functions, and compare two fresh runs",
		UsageText: "weir plugin check FILE [--input 'DATASET=COLUMN TYPE, …'] [--conf KEY=VALUE] [--rows N]\n" +
			"                  [--output text|json]",
		Description: "Refuses what a pipeline would refuse: unknown imports, a manifest that breaks the rules, a function whose\n" +
			"output is not what the manifest says. A function is called with no rows and with made-up ones, each in two fresh\n" +
			"instances that must give the same bytes. A manifest names input columns but not their types: --input tells\n" +
			"them; a function whose inputs are not known is reported as skipped.\n" +
			"\nExample:\n   weir plugin check sap.wasm --input 'bronze.sap_vbak=VBELN STRING, KUNNR STRING, ERDAT DATE'",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "input", Usage: "the columns of an input, `DATASET=DDL` (may be repeated)"},
			&cli.IntFlag{Name: "rows", Usage: "call with `N` made-up rows", Value: 1000},
			confFlag(),
			outputFlag("text", "json"),
		},
		Action: checkPlugin,
	}
}

// checkLine is one line of `weir plugin check --output json`.
type checkLine struct {
	Check    string `json:"check"` // load, manifest, zero_rows or deterministic
	Function string `json:"function,omitempty"`
	// Result is ok, skipped or failed.
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code,omitempty"`
}

func checkPlugin(c *cli.Context) error {
	args, err := arguments(c, "the file of a module")
	if err != nil {
		return err
	}
	format, err := outputFormat(c, "text", "json")
	if err != nil {
		return err
	}
	conf, err := keyValues(c, "conf")
	if err != nil {
		return err
	}
	schemas, err := inputSchemas(c)
	if err != nil {
		return err
	}
	if c.Int("rows") < 0 {
		return wrongUsage(fault.New("INVALID_ARGUMENT", "--rows %d is negative", c.Int("rows")))
	}
	wasm, err := readModule(args[0])
	if err != nil {
		return err
	}
	failed := 0
	tell := func(l checkLine) error {
		if l.Result == "failed" {
			failed++
		}
		return writeCheck(c.App.Writer, format, l)
	}
	k := check{name: args[0], wasm: wasm, conf: conf, inputs: schemas, rows: c.Int("rows"), tell: tell}
	if err := k.run(c.Context); err != nil {
		return err
	}
	if failed > 0 {
		return fault.New("PLUGIN_CHECK_FAILED", "%d of the checks of %s failed", failed, args[0])
	}
	return nil
}

func writeCheck(w io.Writer, format string, l checkLine) error {
	if format == "json" {
		return writeJSON(w, l)
	}
	what := l.Check
	if l.Function != "" {
		what = l.Function + ": " + l.Check
	}
	if l.Detail != "" {
		l.Detail = "  " + printable(l.Detail)
	}
	_, err := fmt.Fprintf(w, "%-7s %s%s\n", l.Result, what, l.Detail)
	return err
}

// inputSchemas reads --input. The names are compared without case, as datasets are.
func inputSchemas(c *cli.Context) (map[string]*arrow.Schema, error) {
	pairs, err := keyValues(c, "input")
	if err != nil {
		return nil, err
	}
	schemas := map[string]*arrow.Schema{}
	for name, ddl := range pairs {
		columns, err := coltype.ParseDDL(ddl)
		if err != nil {
			return nil, wrongUsage(fault.Wrap(err, "INVALID_ARGUMENT", "the columns of --input %s cannot be read", name))
		}
		fields := make([]arrow.Field, len(columns))
		for i, col := range columns {
			fields[i] = col.Arrow()
		}
		schemas[strings.ToLower(name)] = arrow.NewSchema(fields, nil)
	}
	return schemas, nil
}

// check is one run of `weir plugin check`.
type check struct {
	name   string
	wasm   []byte
	conf   map[string]string
	inputs map[string]*arrow.Schema
	rows   int
	tell   func(checkLine) error
}

func (k check) run(ctx context.Context) error {
	var first []byte
	err := withModule(ctx, k.name, k.wasm, k.conf, func(m *plugin.Module) error {
		if err := k.tell(checkLine{Check: "load", Result: "ok", Detail: fmt.Sprintf("sha256 %s, %s", m.SHA256(), byteSize(int64(len(k.wasm))))}); err != nil {
			return err
		}
		var err error
		if first, err = json.Marshal(m.Manifest()); err != nil {
			return err
		}
		for _, f := range m.Manifest().Functions {
			if err := k.zeroRows(ctx, m, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// A second engine: nothing of the first can reach it.
	return withModule(ctx, k.name, k.wasm, k.conf, func(m *plugin.Module) error {
		second, err := json.Marshal(m.Manifest())
		if err != nil {
			return err
		}
		line := checkLine{Check: "manifest", Result: "ok", Detail: fmt.Sprintf("%d functions, %d datasets, %d flows; two fresh instances describe themselves alike",
			len(m.Manifest().Functions), len(m.Manifest().Datasets), len(m.Manifest().Flows))}
		if string(first) != string(second) {
			line.Result, line.Code, line.Detail = "failed", "PLUGIN_NOT_DETERMINISTIC", "two fresh instances describe themselves differently"
		}
		if err := k.tell(line); err != nil {
			return err
		}
		for _, f := range m.Manifest().Functions {
			if err := k.twice(ctx, m, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k check) zeroRows(ctx context.Context, m *plugin.Module, f abi.Function) error {
	line := checkLine{Check: "zero_rows", Function: f.Name, Result: "ok"}
	inputs, why := k.schemasFor(f)
	if why != "" {
		line.Result, line.Detail = "skipped", why
		return k.tell(line)
	}
	gives, err := describeOutputs(ctx, m, f, inputs)
	if err == nil {
		_, err = k.call(ctx, m, f, inputs, 0)
	}
	switch {
	case queries(err):
		line.Result, line.Detail = "skipped", "it runs queries, which only a pipeline answers"
		return k.tell(line)
	case err != nil:
		line.Result, line.Code, line.Detail = "failed", fault.CodeOf(err), err.Error()
		return k.tell(line)
	}
	line.Detail = "gives " + gives
	return k.tell(line)
}

// describeOutputs lists the columns that a function writes, to each table when
// it writes several.
func describeOutputs(ctx context.Context, m *plugin.Module, f abi.Function, inputs []*arrow.Schema) (string, error) {
	list := func(s *arrow.Schema) string {
		var columns []string
		for _, field := range s.Fields() {
			columns = append(columns, field.Name+" "+coltype.String(field.Type))
		}
		return strings.Join(columns, ", ")
	}
	if f.Kind != abi.KindForeachBatch {
		out, err := m.Schema(ctx, f.Name, inputs)
		if err != nil {
			return "", err
		}
		return list(out), nil
	}
	outs, err := m.Outputs(ctx, f.Name, inputs)
	var parts []string
	for i, out := range outs {
		parts = append(parts, fmt.Sprintf("to %s: %s", f.Outputs[i].Dataset, list(out)))
	}
	return strings.Join(parts, "; "), err
}

// twice calls the function with made-up rows in two fresh instances.
func (k check) twice(ctx context.Context, m *plugin.Module, f abi.Function) error {
	line := checkLine{Check: "deterministic", Function: f.Name, Result: "ok"}
	inputs, why := k.schemasFor(f)
	if why != "" {
		line.Result, line.Detail = "skipped", why
		return k.tell(line)
	}
	first, firstErr := k.call(ctx, m, f, inputs, k.rows)
	second, secondErr := k.call(ctx, m, f, inputs, k.rows)
	switch {
	case queries(firstErr):
		line.Result, line.Detail = "skipped", "it runs queries, which only a pipeline answers"
	case fmt.Sprint(firstErr) != fmt.Sprint(secondErr) || first.text != second.text:
		line.Result, line.Code, line.Detail = "failed", "PLUGIN_NOT_DETERMINISTIC", "two fresh instances gave different results for the same rows: "+first.differs(second)
	case firstErr != nil:
		// A row that a function cannot take is a row error, not the end of the flow.
		line.Result, line.Code, line.Detail = "failed", fault.CodeOf(firstErr), firstErr.Error()
	default:
		line.Detail = fmt.Sprintf("%d rows in, %d out, %d row errors, twice the same", k.rows, first.rows, first.rowErrors)
	}
	return k.tell(line)
}

// queries reports the failure of a function that could not run its queries here.
func queries(err error) bool { return err != nil && strings.Contains(err.Error(), "] query: ") }

// schemasFor gives the schemas of a function's inputs, or why they are not known.
func (k check) schemasFor(f abi.Function) ([]*arrow.Schema, string) {
	switch f.Kind {
	case abi.KindMap, abi.KindStateful, abi.KindQuery, abi.KindForeachBatch, abi.KindSnapshot:
	default:
		return nil, "functions of kind " + f.Kind + " are not run here"
	}
	var out []*arrow.Schema
	for i, in := range f.Inputs {
		name := in.Dataset
		if in.Source != nil {
			name = in.Source.Path
		}
		schema, ok := k.inputs[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Sprintf("the columns of input %d are not known; pass --input '%s=…'", i, name)
		}
		if in.Columns != nil {
			var fields []arrow.Field
			for _, col := range neededColumns(f, i) {
				at := slices.IndexFunc(schema.Fields(), func(have arrow.Field) bool { return strings.EqualFold(have.Name, col) })
				if at < 0 {
					return nil, fmt.Sprintf("--input %s has no column %s", name, col)
				}
				fields = append(fields, schema.Field(at))
			}
			schema = arrow.NewSchema(fields, nil)
		}
		out = append(out, schema)
	}
	return out, ""
}

// neededColumns are the columns of input i that the function reads, and those
// of input 0 that go around it.
func neededColumns(f abi.Function, i int) []string {
	columns := slices.Clone(f.Inputs[i].Columns)
	if i == 0 {
		for _, p := range f.Passthrough {
			if !slices.Contains(columns, p.Input) {
				columns = append(columns, p.Input)
			}
		}
	}
	return columns
}

// outcome is what a call gave, as text that two runs can be compared by.
type outcome struct {
	text            string
	rows, rowErrors int64
}

func (o outcome) differs(other outcome) string {
	a, b := strings.Split(o.text, "\n"), strings.Split(other.text, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("at line %d %.200s / %.200s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines / %d lines", len(a), len(b))
}

func (k check) call(ctx context.Context, m *plugin.Module, f abi.Function, inputs []*arrow.Schema, rows int) (outcome, error) {
	var o outcome
	var text strings.Builder
	readers := make([]array.RecordReader, len(inputs))
	for i, s := range inputs {
		r, err := sampleReader(memory.DefaultAllocator, s, rows)
		if err != nil {
			return o, err
		}
		defer r.Release()
		readers[i] = r
	}
	call := plugin.Call{
		Function: f.Name,
		Context:  abi.CallContext{Pipeline: "check", UpdateID: "check", Flow: f.Name, BatchTimestamp: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Seed:     1,
		Inputs:   readers,
		OnRowError: func(input int, row int64, code, message string) error {
			o.rowErrors++
			fmt.Fprintf(&text, "row error %d %d %s %s\n", input, row, code, message)
			return nil
		},
		OnSnapshot: func(s abi.SnapshotResult) error {
			if s.Version == nil {
				fmt.Fprintln(&text, "no snapshot")
			} else {
				fmt.Fprintf(&text, "version %s %s\n", s.Version.Type, s.Version)
			}
			return nil
		},
		OnMetric: func(name string, value float64) { fmt.Fprintf(&text, "metric %s %v\n", name, value) },
		Mem:      memory.DefaultAllocator,
	}
	take := func(output int, rec arrow.RecordBatch) error {
		o.rows += rec.NumRows()
		for i := range int(rec.NumRows()) {
			fmt.Fprintf(&text, "%d %s\n", output, relation.AppendRowJSON(nil, rec, i))
		}
		return nil
	}
	if f.Kind == abi.KindForeachBatch {
		err := m.ForeachBatch(ctx, call, take)
		o.text = text.String()
		return o, err
	}
	out, err := m.Map(ctx, call)
	if err != nil {
		return o, err
	}
	defer out.Release()
	for out.Next() {
		if err := take(0, out.RecordBatch()); err != nil {
			return o, err
		}
	}
	o.text = text.String()
	return o, out.Err()
}
