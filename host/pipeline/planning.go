package pipeline

import (
	"strings"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// RefreshDecision is what was done with a batch query, and why, in the words of
// the event log.
type RefreshDecision struct {
	Technique string `json:"technique"` // NO_OP, COMPLETE_RECOMPUTE or APPEND_ONCE
	Reason    string `json:"reason"`
	Detail    string `json:"detail,omitempty"`
}

func (r *RefreshDecision) String() string {
	text := r.Technique + ": " + r.Reason
	if r.Detail != "" {
		text += " (" + r.Detail + ")"
	}
	return text
}

// planning gives a decision in the shape of planning_information.
func planning(d *dataset, r *RefreshDecision) events.PlanningDetails {
	noOp := r.Technique == string(stream.NoOp)
	issue := events.Issue{Type: r.Reason, Prevents: true, Reason: r.Detail}
	out := events.PlanningDetails{Techniques: []events.Technique{{MaintenanceType: events.NoOp, Chosen: noOp, Applicable: noOp}}}
	if !noOp {
		out.Techniques[0].Issues = []events.Issue{issue}
	}
	if d.refreshPolicy == stream.IncrementalRefresh && !noOp {
		issue = events.Issue{
			Type: string(stream.NotIncrementalizing), Prevents: true,
			Reason: "this version of weir has no incremental refresh: the view is computed anew",
		}
		out.Techniques = append(out.Techniques, events.Technique{MaintenanceType: "MAINTENANCE_TYPE_GENERIC_AGGREGATE", Issues: []events.Issue{issue}})
	}
	if r.Technique != string(stream.AppendOnce) {
		out.Techniques = append(out.Techniques, events.Technique{MaintenanceType: events.CompleteRecompute, Chosen: !noOp, Applicable: true})
	}
	return out
}

// refreshPolicyProperty is REFRESH POLICY for datasets of a manifest.
const refreshPolicyProperty = "weir.refreshPolicy"

// takePolicy reads how a materialized view wants to be refreshed.
func takePolicy(d *dataset, text string) *fault.Error {
	word := strings.ToUpper(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '_' }), " "))
	if word == "" {
		return nil
	}
	if d.kind != materializedView {
		return fault.New("INVALID_OPTION", "a refresh policy on a %s", strings.ReplaceAll(d.kind, "_", " ")).
			WithHint("Only materialized views have one")
	}
	switch word {
	case "AUTO":
		d.refreshPolicy = stream.AutoRefresh
	case "FULL":
		d.refreshPolicy = stream.FullRefreshPolicy
	case "INCREMENTAL":
		d.refreshPolicy = stream.IncrementalRefresh
	case "INCREMENTAL STRICT":
		return fault.New("NOT_SUPPORTED", "the refresh policy incremental strict: a materialized view is computed anew or not at all").
			WithHint("Use INCREMENTAL, which falls back to a complete refresh, or AUTO")
	default:
		return fault.New("INVALID_OPTION", "the refresh policy %q", text).WithHint("Use AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL")
	}
	return nil
}
