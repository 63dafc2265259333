package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
)

func dryRunCommand() *cli.Command {
	return &cli.Command{
		Name:      "dry-run",
		Usage:     "check names, schemas and expectations; write nothing",
		UsageText: "weir dry-run [-f weir.yaml] [--conf KEY=VALUE] [--output text|json]",
		Description: "Reads the spec, the SQL files and the modules, works out the schema of every dataset and prints the plan, or all\n" +
			"that is wrong with the project. Every query, function and expectation is checked against the types of its input.\n" +
			"\nExample:\n   weir dry-run --conf dwh.landing=./landing",
		Flags: projectFlags(outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c); err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			err = withTolerant(c, func(ctx context.Context, p *pipeline.Pipeline) error {
				plan, err := p.Plan(ctx)
				if err != nil {
					return wrongUsage(err)
				}
				if format == "json" {
					return writePlanJSON(c.App.Writer, plan)
				}
				return writePlanText(c.App.Writer, c.App.ErrWriter, plan)
			})
			if err != nil && format == "json" {
				return writeFlaws(c.App.Writer, err)
			}
			return err
		},
	}
}

// The lines of `weir dry-run --output json`.
type (
	datasetLine struct {
		Kind string `json:"kind"` // dataset
		pipelineDataset
	}
	pipelineDataset struct {
		Name         string                 `json:"name"`
		Type         string                 `json:"type"`
		Comment      string                 `json:"comment,omitempty"`
		Private      bool                   `json:"private,omitempty"`
		File         string                 `json:"file,omitempty"`
		Line         int                    `json:"line,omitempty"`
		Columns      []pipeline.Column      `json:"columns"`
		Expectations []pipeline.Expectation `json:"expectations,omitempty"`
		PartitionBy  []string               `json:"partition_by,omitempty"`
		ClusterBy    []string               `json:"cluster_by,omitempty"`
		Properties   map[string]string      `json:"properties,omitempty"`
		Keys         []pipeline.Key         `json:"keys,omitempty"`
	}
	flowLine struct {
		Kind   string   `json:"kind"` // flow
		Name   string   `json:"name"`
		Target string   `json:"target"`
		Type   string   `json:"type"`
		Level  int      `json:"level"`
		Steps  []string `json:"steps"`
		// Changes is that of an auto_cdc flow.
		Changes *pipeline.ChangesPlan `json:"changes,omitempty"`
	}
	informationLine struct {
		Kind    string `json:"kind"` // information
		Code    string `json:"code"`
		Setting string `json:"setting"`
		Message string `json:"message"`
		Line    int    `json:"line,omitempty"`
	}
	warningLine struct {
		Kind    string `json:"kind"` // warning
		Message string `json:"message"`
	}
)

// errorLine is one thing that is wrong with a project.
type errorLine struct {
	Kind    string `json:"kind"` // error
	Code    string `json:"code"`
	Message string `json:"message"`
	Dataset string `json:"dataset,omitempty"`
	Flow    string `json:"flow,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int64  `json:"line,omitempty"`
	Column  int64  `json:"column,omitempty"`
}

// writeFlaws writes what is wrong as JSON, too; the error itself is told as ever.
func writeFlaws(w io.Writer, err error) error {
	var inner *exitError
	flaws := err
	if errors.As(err, &inner) {
		flaws = inner.err
	}
	for _, e := range pipeline.Flaws(flaws) {
		line := errorLine{Kind: "error", Code: fault.CodeOf(e), Message: e.Error()}
		var coded *fault.Error
		if errors.As(e, &coded) {
			at := coded.Where
			line.Dataset, line.Flow, line.File, line.Line, line.Column = at.Dataset, at.Flow, at.File, at.Line, at.Column
		}
		if werr := writeJSON(w, line); werr != nil {
			return errors.Join(err, werr)
		}
	}
	return err
}

func writePlanJSON(w io.Writer, plan *pipeline.Plan) error {
	for _, d := range plan.Datasets {
		if err := writeJSON(w, datasetLine{"dataset", pipelineDataset{
			Name: d.Name, Type: d.Kind, Comment: d.Comment, Private: d.Private, File: d.File, Line: d.Line,
			Columns: d.Columns, Expectations: d.Expectations, PartitionBy: d.PartitionBy, ClusterBy: d.ClusterBy,
			Properties: d.Properties, Keys: d.Keys,
		}}); err != nil {
			return err
		}
	}
	for _, f := range plan.Flows {
		if err := writeJSON(w, flowLine{"flow", f.Name, f.Target, f.Kind, f.Level, f.Steps, f.Changes}); err != nil {
			return err
		}
	}
	for _, n := range plan.Notices {
		if err := writeJSON(w, informationLine{"information", n.Code, n.Setting, n.Message, n.Line}); err != nil {
			return err
		}
	}
	for _, m := range plan.Warnings {
		if err := writeJSON(w, warningLine{"warning", m}); err != nil {
			return err
		}
	}
	return nil
}

func writePlanText(out, errOut io.Writer, plan *pipeline.Plan) error {
	var b strings.Builder
	for _, d := range plan.Datasets {
		fmt.Fprintf(&b, "%s  (%s%s)\n", d.Name, strings.ReplaceAll(d.Kind, "_", " "), definedAt(d.File, d.Line))
		for _, col := range d.Columns {
			null := ""
			if !col.Nullable {
				null = " NOT NULL"
			}
			fmt.Fprintf(&b, "  %-28s %s%s\n", col.Name, col.Type, null)
		}
		for _, e := range d.Expectations {
			fmt.Fprintf(&b, "  expect %s: %s  → %s\n", e.Name, e.Condition, e.Action)
		}
	}
	for _, f := range plan.Flows {
		if c := f.Changes; c != nil {
			order := ""
			if c.SequenceBy != "" { // snapshots are ordered by their versions
				order = "sequence by " + c.SequenceBy + "  "
			}
			fmt.Fprintf(&b, "%s  (flow into %s)\n  %s from %s  keys (%s)  %sscd type %d\n", f.Name, f.Target, f.Kind, c.Source, strings.Join(c.Keys, ", "), order, c.SCDType)
		}
	}
	fmt.Fprintf(&b, "%s: %d datasets, %d flows; nothing was written\n", plan.Pipeline, len(plan.Datasets), len(plan.Flows))
	for _, n := range plan.Notices {
		fmt.Fprintln(errOut, printable("["+n.Code+"] "+n.Message))
	}
	for _, m := range plan.Warnings {
		fmt.Fprintln(errOut, "warning: "+printable(m))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func definedAt(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return ", " + file
	default:
		return fmt.Sprintf(", %s:%d", file, line)
	}
}
