package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// keyConstraint reads PRIMARY KEY … or [FOREIGN KEY] REFERENCES …. It stands in
// the column list, or on the column that is named.
func (p *parser) keyConstraint(st *Statement, name, column string) error {
	at := p.here()
	k := KeyConstraint{Name: name, Line: int(at.Line)}
	switch {
	case p.accept("PRIMARY", "KEY"):
		k.Primary = true
	case column != "" && p.accept("FOREIGN", "KEY"), column != "" && p.is("REFERENCES"):
	default:
		if err := p.expect("FOREIGN", "KEY"); err != nil {
			return err
		}
	}
	if column != "" {
		k.Columns = []string{column}
	} else if err := p.keyColumns(&k); err != nil {
		return err
	}
	if !k.Primary {
		if err := p.expect("REFERENCES"); err != nil {
			return err
		}
		var err error
		if k.References, err = p.tableName(); err != nil {
			return err
		}
		if p.is("(") {
			if k.RefColumns, err = p.columnNames(); err != nil {
				return err
			}
			if len(k.RefColumns) != len(k.Columns) {
				return invalidKey(at, "the foreign key has %d columns and refers to %d", len(k.Columns), len(k.RefColumns))
			}
		}
	}
	if err := p.keyOptions(&k); err != nil {
		return err
	}
	for _, other := range st.Keys {
		if k.Primary && other.Primary {
			return invalidKey(at, "%s has two primary keys", st.Name)
		}
		if k.Name != "" && strings.EqualFold(k.Name, other.Name) {
			return invalidKey(at, "two constraints are called %s", k.Name)
		}
	}
	st.Keys = append(st.Keys, k)
	return nil
}

// keyColumns reads (column [TIMESERIES], …).
func (p *parser) keyColumns(k *KeyConstraint) error {
	if err := p.expect("("); err != nil {
		return err
	}
	for {
		name, err := p.identifier("a column name")
		if err != nil {
			return err
		}
		k.Columns = append(k.Columns, name)
		if k.Primary && p.accept("TIMESERIES") {
			k.TimeSeries = append(k.TimeSeries, name)
		}
		if p.accept(")") {
			return nil
		}
		if !p.accept(",") {
			return p.unexpected(", or )")
		}
	}
}

// keyOptions reads what says that nothing enforces the key. To enforce it is
// refused.
func (p *parser) keyOptions(k *KeyConstraint) error {
	for {
		at := p.here()
		switch {
		case p.accept("RELY"):
			k.Rely = true
		case p.accept("NORELY"), p.accept("NOT", "ENFORCED"), p.accept("NOT", "DEFERRABLE"), p.accept("DEFERRABLE"),
			p.accept("INITIALLY", "DEFERRED"), p.accept("INITIALLY", "IMMEDIATE"), p.accept("MATCH", "FULL"),
			p.accept("ON", "UPDATE", "NO", "ACTION"), p.accept("ON", "DELETE", "NO", "ACTION"):
		case p.is("ENFORCED"), p.is("ON", "UPDATE"), p.is("ON", "DELETE"), p.is("ENABLE"):
			return p.notSupported(at, "a key that is enforced", "Keys are information for readers; check rows with CONSTRAINT … EXPECT")
		default:
			return nil
		}
	}
}

// checkKeys holds keys to the columns that are declared.
func (p *parser) checkKeys(st *Statement) error {
	declared := map[string]*Column{}
	for i := range st.Columns {
		declared[strings.ToLower(st.Columns[i].Name)] = &st.Columns[i]
	}
	for _, k := range st.Keys {
		at := fault.Where{File: st.File, Line: int64(k.Line)}
		seen := map[string]bool{}
		for _, name := range k.Columns {
			c := declared[strings.ToLower(name)]
			switch {
			case c == nil:
				return invalidKey(at, "the key has column %s, which the column list has not", name)
			case c.Type == nil:
				return invalidKey(at, "column %s of the key has no type", name)
			case k.Primary && !c.NotNull:
				return invalidKey(at, "column %s of the primary key may be NULL", name).WithHint("Write NOT NULL on it")
			case seen[strings.ToLower(name)]:
				return invalidKey(at, "the key has column %s twice", name)
			}
			seen[strings.ToLower(name)] = true
		}
	}
	return nil
}

func invalidKey(at fault.Where, format string, args ...any) *fault.Error {
	return fault.New("INVALID_KEY_CONSTRAINT", format, args...).At(at)
}
