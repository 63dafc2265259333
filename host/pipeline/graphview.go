package pipeline

import (
	"context"

	"github.com/weir-data/weir/host/expect"
)

// Graph is a pipeline's datasets and what flows between them, ready to print.
// Nodes and edges are in a stable order: upstream before downstream, then by name.
type Graph struct {
	Pipeline string `json:"pipeline"`
	Nodes    []Node `json:"nodes"`
	Edges    []Edge `json:"edges"`
}

// Node is one box of the graph.
type Node struct {
	// ID is unique within the graph; for datasets it is the three-part name.
	ID string `json:"id"`
	// Kind is streaming_table, materialized_view, temporary_view, view, sink,
	// files (a landing folder), quarantine (a table of refused rows), event_log
	// or table (one that is not this pipeline's).
	Kind    string `json:"kind"`
	Label   string `json:"label"`
	Comment string `json:"comment,omitempty"`
	// File and Line say where it is defined.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Function is plugin.function when a module computes it.
	Function string `json:"function,omitempty"`
	// Table is what the table holds; nil until it is made, and for views.
	Table *TableState `json:"table,omitempty"`
	// Flows are those that fill it, and what became of them last.
	Flows []FlowState `json:"flows,omitempty"`
}

// Edge says that To reads From.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Flow string `json:"flow"`
	// Mode is stream or batch.
	Mode string `json:"mode"`
}

// view gives the graph as it is printed.
func (g *graph) view(pipeline string) *Graph {
	out := &Graph{Pipeline: pipeline, Nodes: []Node{}, Edges: []Edge{}}
	seen := map[string]bool{}
	node := func(n Node) {
		if !seen[n.ID] {
			seen[n.ID] = true
			out.Nodes = append(out.Nodes, n)
		}
	}
	// Sources stand before what reads them; the order has upstream first already.
	for _, d := range g.order {
		for _, in := range d.inputs() {
			switch {
			case in.files != nil:
				node(Node{ID: "files:" + in.files.path, Kind: "files", Label: in.files.path})
			case in.log != nil:
				node(Node{ID: eventLogID, Kind: "event_log", Label: eventLogID})
			case in.quarantine != nil:
				name := in.quarantine.name.Quarantine()
				node(Node{ID: name.String(), Kind: "quarantine", Label: name.String()})
			case in.dataset == nil:
				node(Node{ID: in.external.String(), Kind: "table", Label: in.external.String()})
			}
		}
		n := Node{ID: d.id, Kind: d.kind, Label: d.id, Comment: d.comment, File: d.place.File, Line: int(d.place.Line)}
		for _, f := range d.flows {
			if f.body.function != nil && n.Function == "" {
				n.Function = f.body.label()
			}
		}
		node(n)
		for f, in := range d.inputs() {
			e := Edge{From: in.id(), To: d.id, Flow: f.name, Mode: "batch"}
			if in.stream {
				e.Mode = "stream"
			}
			if in.files != nil {
				e.From = "files:" + in.files.path
			}
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

// Graph gives the datasets and their edges, what the tables hold and what
// became of their flows last. It reads the logs of the tables and the
// pipeline's own, and no data.
func (p *Pipeline) Graph(ctx context.Context) (*Graph, error) {
	g := p.graph.view(p.spec.Name)
	return g, p.addStates(ctx, g)
}

// Plan is what an update would do: the graph, the schema of every dataset and
// its expectations. Making one writes nothing.
type Plan struct {
	Pipeline string        `json:"pipeline"`
	Datasets []DatasetPlan `json:"datasets"`
	Flows    []FlowPlan    `json:"flows"`
	Warnings []string      `json:"warnings,omitempty"`
	// Notices tell which settings of the spec have no effect.
	Notices []Notice `json:"notices,omitempty"`

	graph *Graph
}

// Graph gives the plan's graph.
func (p *Plan) Graph() *Graph { return p.graph }

// DatasetPlan is one dataset of a plan.
type DatasetPlan struct {
	Name         string            `json:"name"`
	Kind         string            `json:"kind"`
	Comment      string            `json:"comment,omitempty"`
	Private      bool              `json:"private,omitempty"`
	File         string            `json:"file,omitempty"`
	Line         int               `json:"line,omitempty"`
	Columns      []Column          `json:"columns"`
	Expectations []Expectation     `json:"expectations,omitempty"`
	PartitionBy  []string          `json:"partition_by,omitempty"`
	ClusterBy    []string          `json:"cluster_by,omitempty"`
	Properties   map[string]string `json:"properties,omitempty"`
	Keys         []Key             `json:"keys,omitempty"`
	// Quarantine names the table for refused rows, if there can be any.
	Quarantine string `json:"quarantine,omitempty"`
	// OnRowError is skip or quarantine; "" means fail.
	OnRowError string `json:"on_row_error,omitempty"`
}

// Column is a column with its type in Spark's spelling.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Comment  string `json:"comment,omitempty"`
}

// Expectation is a rule of a dataset.
type Expectation struct {
	Name      string `json:"name"`
	Condition string `json:"condition"`
	// Action is WARN, DROP ROW, FAIL UPDATE or QUARANTINE.
	Action string `json:"action"`
}

// actionName gives what an expectation does as SQL spells it.
func actionName(a expect.Action) string {
	switch a {
	case expect.Drop:
		return "DROP ROW"
	case expect.Fail:
		return "FAIL UPDATE"
	case expect.Quarantine:
		return "QUARANTINE"
	}
	return "WARN"
}

// FlowPlan is one flow of a plan.
type FlowPlan struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	Kind   string `json:"kind"`
	// Level counts from 0; flows of one level do not read each other.
	Level int      `json:"level"`
	Steps []string `json:"steps"`
	// Changes is what an auto_cdc flow does with the changes of its source.
	Changes *ChangesPlan `json:"changes,omitempty"`
}

// ChangesPlan says how an auto_cdc flow merges changes.
type ChangesPlan struct {
	Source        string   `json:"source"`
	Keys          []string `json:"keys"`
	SequenceBy    string   `json:"sequence_by"`
	SCDType       int      `json:"stored_as_scd_type"`
	DeletesWhen   string   `json:"apply_as_deletes,omitempty"`
	TruncatesWhen string   `json:"apply_as_truncates,omitempty"`
}
