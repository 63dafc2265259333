package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/fault"
)

// Notice is something about the spec that a person should know and that is
// neither an error nor a warning.
type Notice struct {
	Code    string `json:"code"` // IGNORED_SETTING
	Setting string `json:"setting"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
}

// ignoredFields are fields of a Lakeflow pipeline that have no meaning on one
// machine, with the kind of their value and what holds instead. They are
// accepted, so that a pipeline's JSON can be used as it is, and told of.
var ignoredFields = map[string]struct{ kind, instead string }{
	"serverless":             {"true or false", "the update runs in the process that is started"},
	"photon":                 {"true or false", "DuckDB runs the queries"},
	"clusters":               {"a list", "there is one machine; memory_limit says how much of it is used"},
	"channel":                {"text", "the version is that of the installed binary"},
	"tags":                   {"a mapping", "nothing reads them"},
	"run_as":                 {"a mapping", "an update runs as the user who starts it"},
	"restart_window":         {"a mapping", "only continuous pipelines are restarted"},
	"environment":            {"a mapping", "no Python is run, so its packages are not needed"},
	"deployment":             {"a mapping", "the files are read where they are"},
	"root_path":              {"text", "paths are relative to the spec's folder"},
	"budget_policy_id":       {"text", "nothing is billed"},
	"usage_policy_id":        {"text", "nothing is billed"},
	"serverless_compute_id":  {"text", "the update runs in the process that is started"},
	"allow_duplicate_names":  {"true or false", "a storage has one pipeline of a name"},
	"id":                     {"text", "a pipeline gets its id in its storage, at its first run"},
	"expected_last_modified": {"a number", "the spec is the file"},
	"permissions":            {"a list", "the permissions of files and buckets hold"},
	"access_control_list":    {"a list", "the permissions of files and buckets hold"},
}

// foreignFields adds the handlers of the fields that Weir knows from Lakeflow
// and does not act upon.
func (s *Spec) foreignFields(f *yamlFile, handlers map[string]func(ast.Node) error) {
	f.unlisted = map[string]bool{}
	add := func(name string, handle func(ast.Node) error) { handlers[name], f.unlisted[name] = handle, true }
	for _, name := range slices.Sorted(maps.Keys(ignoredFields)) {
		field := ignoredFields[name]
		add(name, func(n ast.Node) error {
			if kind := yamlKind(n); kind != field.kind {
				return f.errAt(n, "%s must be %s, not %s", name, field.kind, kind)
			}
			s.ignore(name, field.instead, lineOf(n))
			return nil
		})
	}
	later := func(name, what, hint string, unset func(ast.Node) bool) {
		add(name, func(n ast.Node) error {
			if unset(n) {
				return nil
			}
			e := f.errAt(n, "%s: %s", name, what).WithHint("%s", hint)
			e.Code = "NOT_SUPPORTED"
			return e
		})
	}
	never := func(ast.Node) bool { return false }
	later("continuous", "continuous pipelines cannot be run yet", "Leave it out, and let a scheduler start `weir run` as often as needed", isFalse)
	later("notifications", "nobody would be notified yet", "Leave it out, and let the scheduler tell of an exit code that is not 0", isEmpty)
	later("trigger", "updates are not started on a schedule yet", "Leave it out, and let a scheduler start `weir run`", isManual)
	later("filters", "files cannot be filtered here", "Name the files and folders that belong to the pipeline under libraries", isEmpty)
	later("dry_run", "the spec describes a pipeline, not one request", "Use `weir dry-run`", isFalse)
	later("gateway_definition", "ingestion gateways are a managed service", "Land the changes as files", never)
	later("ingestion_definition", "managed connectors are not part of Weir", "Land the data as files", never)
}

// ignore records a setting that has no effect.
func (s *Spec) ignore(setting, instead string, line int) {
	s.Notices = append(s.Notices, Notice{
		Code: "IGNORED_SETTING", Setting: setting, Line: line,
		Message: fmt.Sprintf("%s has no effect here: %s", setting, instead),
	})
}

func isFalse(n ast.Node) bool {
	b, ok := n.(*ast.BoolNode)
	return ok && !b.Value
}

func isEmpty(n ast.Node) bool {
	switch v := n.(type) {
	case *ast.SequenceNode:
		return len(v.Values) == 0
	case *ast.MappingNode:
		for _, kv := range v.Values {
			if kv.Value != nil && kv.Value.Type() != ast.NullType && !isEmpty(kv.Value) {
				return false
			}
		}
		return true
	case *ast.MappingValueNode:
		return v.Value == nil || v.Value.Type() == ast.NullType || isEmpty(v.Value)
	}
	return false
}

// isManual holds for the trigger `{manual: {}}`, which is how `weir run` works.
func isManual(n ast.Node) bool {
	var values []*ast.MappingValueNode
	switch v := n.(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	default:
		return false
	}
	for _, kv := range values {
		key, ok := kv.Key.(*ast.StringNode)
		if !ok || key.Value != "manual" {
			return false
		}
	}
	return true
}

// The editions of a pipeline: what a lower one lacks is refused.
const (
	editionCore     = "CORE"
	editionPro      = "PRO"
	editionAdvanced = "ADVANCED"
)

func readEdition(f *yamlFile, n ast.Node) (string, error) {
	text, err := f.requiredText(n, "edition")
	if err != nil {
		return "", err
	}
	editions := []string{editionCore, editionPro, editionAdvanced}
	if edition := strings.ToUpper(text); slices.Contains(editions, edition) {
		return edition, nil
	}
	return "", suggest(f.errAt(n, "there is no edition %q", text), text, editions, "Use CORE, PRO or ADVANCED, which is the default")
}

// checkEdition refuses what the pipeline's edition does not have, as a deployment
// to Lakeflow would: expectations need ADVANCED, AUTO CDC needs PRO.
func (p *Pipeline) checkEdition() {
	lacks := func(d *dataset, what, edition string) {
		p.flaws.add(fault.New("UNSUPPORTED_BY_EDITION", "the pipeline is of edition %s, and %s needs %s", p.spec.Edition, what, edition).
			At(fault.Where{Dataset: d.id}).At(d.place).WithHint("Leave edition out of the spec: ADVANCED is the default, and costs nothing here"))
	}
	for _, d := range p.graph.order {
		if len(d.rules) > 0 && p.spec.Edition != editionAdvanced {
			lacks(d, "the expectation "+d.rules[0].Name, editionAdvanced)
		}
		if p.spec.Edition == editionCore && slices.ContainsFunc(d.flows, func(f *flow) bool { return f.kind == autoCDCFlow || f.kind == snapshotFlow }) {
			lacks(d, "AUTO CDC", editionPro)
		}
	}
}

// readEventLog reads where the event log is published; what is not said are
// the pipeline's own catalog and schema.
func readEventLog(f *yamlFile, n ast.Node) (*catalog.Name, error) {
	log := &catalog.Name{}
	part := func(name string, to *string) func(ast.Node) error {
		return func(n ast.Node) (err error) {
			*to, err = f.requiredText(n, "event_log "+name)
			return err
		}
	}
	if err := f.fields(n, "event_log", map[string]func(ast.Node) error{
		"catalog": part("catalog", &log.Catalog), "schema": part("schema", &log.Schema), "name": part("name", &log.Table),
	}); err != nil {
		return nil, err
	}
	if log.Table == "" {
		return nil, f.errAt(n, "event_log needs the name of a table")
	}
	return log, nil
}
