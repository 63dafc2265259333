package expect

import "github.com/weir-data/weir/host/fault"

// Action is what happens to a row that violates a rule.
type Action int

const (
	// Warn keeps the row and counts it.
	Warn Action = iota
	// Drop leaves the row out.
	Drop
	// Fail ends the update.
	Fail
	// Quarantine leaves the row out and keeps it in the quarantine table.
	Quarantine
)

var actions = [...]string{"warn", "drop", "fail", "quarantine"}

// String gives the manifest's word.
func (a Action) String() string { return actions[a] }

// ParseAction reads the manifest's word; "" is warn.
func ParseAction(s string) (Action, error) {
	if s == "" {
		return Warn, nil
	}
	for i, name := range actions {
		if s == name {
			return Action(i), nil
		}
	}
	return 0, fault.New("INVALID_EXPECTATION", "unknown action %q", s).WithHint("Use warn, drop, fail or quarantine")
}

// Rule is one expectation.
type Rule struct {
	Name      string
	Condition string
	// Guest says that the condition is not the operator's: it came with a module.
	Guest    bool
	Action   Action
	NullPass bool // a condition that is NULL holds
}
