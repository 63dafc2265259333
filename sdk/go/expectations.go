package weir

// expectation is a rule on the rows of a dataset.
type expectation struct {
	name, condition, onViolation string
	nullPasses                   bool
}

// NullPolicy says what a condition that comes out NULL means.
type NullPolicy bool

// A NULL condition violates the expectation unless NullPasses is given.
const (
	NullViolates NullPolicy = false
	NullPasses   NullPolicy = true
)

// Rule is one of several expectations: a name, unique within its dataset, and an SQL condition.
type Rule struct {
	Name      string
	Condition string
	Null      NullPolicy
}

// Expect keeps rows that violate the condition, and counts them.
func Expect(name, condition string, null ...NullPolicy) Option {
	return expect("Expect", "warn", one(name, condition, null))
}

// ExpectOrDrop drops rows that violate the condition, and counts them.
func ExpectOrDrop(name, condition string, null ...NullPolicy) Option {
	return expect("ExpectOrDrop", "drop", one(name, condition, null))
}

// ExpectOrFail fails the update at the first row that violates the condition; nothing is committed.
func ExpectOrFail(name, condition string, null ...NullPolicy) Option {
	return expect("ExpectOrFail", "fail", one(name, condition, null))
}

// ExpectOrQuarantine moves rows that violate the condition to the table <target>_quarantine.
func ExpectOrQuarantine(name, condition string, null ...NullPolicy) Option {
	return expect("ExpectOrQuarantine", "quarantine", one(name, condition, null))
}

// ExpectAll is Expect for several rules.
func ExpectAll(rules ...Rule) Option { return expect("ExpectAll", "warn", rules) }

// ExpectAllOrDrop is ExpectOrDrop for several rules.
func ExpectAllOrDrop(rules ...Rule) Option { return expect("ExpectAllOrDrop", "drop", rules) }

// ExpectAllOrFail is ExpectOrFail for several rules.
func ExpectAllOrFail(rules ...Rule) Option { return expect("ExpectAllOrFail", "fail", rules) }

// ExpectAllOrQuarantine is ExpectOrQuarantine for several rules.
func ExpectAllOrQuarantine(rules ...Rule) Option {
	return expect("ExpectAllOrQuarantine", "quarantine", rules)
}

func one(name, condition string, null []NullPolicy) []Rule {
	r := Rule{Name: name, Condition: condition}
	if len(null) > 0 {
		r.Null = null[0]
	}
	return []Rule{r}
}

func expect(option, onViolation string, rules []Rule) Option {
	return Option{option, func(d *declaration) bool {
		if d.dataset == nil || d.dataset.typ == "sink" {
			return false
		}
		for _, rule := range rules {
			if rule.Name == "" || rule.Condition == "" {
				d.wrong(option + " needs a name and a condition")
			}
			for _, e := range d.dataset.expectations {
				if e.name == rule.Name {
					d.wrong("expectation " + rule.Name + " is declared twice")
				}
			}
			d.dataset.expectations = append(d.dataset.expectations,
				expectation{rule.Name, rule.Condition, onViolation, rule.Null == NullPasses})
		}
		return true
	}}
}

func (e expectation) write(w *jsonWriter) {
	w.open('{')
	w.text("name", e.name)
	w.text("condition", e.condition)
	w.text("on_violation", e.onViolation)
	if e.nullPasses {
		w.text("null", "pass")
	}
	w.close('}')
}
