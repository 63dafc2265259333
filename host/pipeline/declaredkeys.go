package pipeline

import (
	"encoding/json"

	"github.com/weir-data/weir/host/sql"
)

// keysProperty is the table property that holds the declared keys: Delta has no
// place for them, and readers may want to know.
const keysProperty = "weir.keys"

// Key is a PRIMARY KEY or FOREIGN KEY of a table. Nothing enforces it.
type Key struct {
	Name    string   `json:"name,omitempty"`
	Kind    string   `json:"kind"` // primary or foreign
	Columns []string `json:"columns"`
	// References is the table of a foreign key, with its columns when they are
	// not those of its primary key.
	References        string   `json:"references,omitempty"`
	ReferencedColumns []string `json:"referenced_columns,omitempty"`
	Rely              bool     `json:"rely,omitempty"`
	TimeSeries        []string `json:"timeseries,omitempty"`
}

func keysOf(keys []sql.KeyConstraint) []Key {
	var out []Key
	for _, k := range keys {
		key := Key{Name: k.Name, Kind: "foreign", Columns: k.Columns, References: k.References, ReferencedColumns: k.RefColumns, Rely: k.Rely, TimeSeries: k.TimeSeries}
		if k.Primary {
			key.Kind = "primary"
		}
		out = append(out, key)
	}
	return out
}

func keysText(keys []sql.KeyConstraint) string {
	text, err := json.Marshal(keysOf(keys))
	if err != nil {
		panic(err) // texts and flags always encode
	}
	return string(text)
}
