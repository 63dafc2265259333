package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// fingerprintFormat goes into every fingerprint. It is raised when the same
// query over the same rows begins to give others: then all views are computed anew.
const fingerprintFormat = 1

// fingerprint is of all that decides what a batch flow puts into its table,
// beside the rows of what it reads.
func (p *Pipeline) fingerprint(f *flow) (string, error) {
	d := f.target
	text, err := json.Marshal(struct {
		Format                 int
		Query                  bodyPrint
		Columns                []columnPrint
		Rules                  []expect.Rule
		OnRowError             stream.RowErrorPolicy
		PartitionBy, ClusterBy []string
		Comment                string
		Properties             map[string]string
		Keys                   []Key  `json:",omitempty"`
		Changes                string `json:",omitempty"`
	}{fingerprintFormat, p.bodyPrint(&f.body), columnPrints(d.columns), d.rules, f.rowErrorPolicy(), d.partitionBy, d.clusterBy, d.comment, d.properties, keysOf(d.keys), f.cdc.print()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// bodyPrint is a query as far as it matters, the views that it reads included.
type bodyPrint struct {
	Query         string
	Module        string `json:",omitempty"` // digest
	Function      string `json:",omitempty"`
	Configuration map[string]string
	Inputs        []inputPrint
}

type inputPrint struct {
	ID      string
	Alias   string
	Columns []string          `json:",omitempty"`
	Options map[string]string `json:",omitempty"` // of files, or the range of changes
	View    *bodyPrint        `json:",omitempty"`
	Rules   []expect.Rule     `json:",omitempty"` // of the view
}

func (p *Pipeline) bodyPrint(b *body) bodyPrint {
	var out bodyPrint
	if b.statement != nil {
		out.Query = b.statement.Query
	}
	if b.function != nil {
		// What a function may read of the configuration it reads by itself; SQL
		// has it in its text.
		out.Module, out.Function, out.Configuration = b.module.loaded.SHA256(), b.function.Name, p.spec.Configuration
	}
	for _, in := range b.inputs {
		i := inputPrint{ID: in.id(), Alias: in.alias, Columns: in.columns}
		if in.files != nil {
			i.Options = in.files.options
		}
		if in.changes != nil {
			i.Options = map[string]string{"from": in.changes.From, "to": in.changes.To}
		}
		if in.dataset != nil && in.dataset.isView() {
			view := p.bodyPrint(in.dataset.query())
			i.View, i.Rules = &view, in.dataset.rules
		}
		out.Inputs = append(out.Inputs, i)
	}
	return out
}

// columnPrint is a declared column without its place in the file.
type columnPrint struct {
	Name, Type string
	NotNull    bool
	Comment    string
	Generated  string
}

func columnPrints(columns []sql.Column) []columnPrint {
	out := make([]columnPrint, len(columns))
	for i, c := range columns {
		out[i] = columnPrint{Name: c.Name, NotNull: c.NotNull, Comment: c.Comment, Generated: c.Generated}
		if c.Type != nil {
			out[i].Type = c.Type.String()
		}
	}
	return out
}
