package pipeline

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/runtime/plugin"
)

// The configuration keys that the pipeline itself reads.
const (
	keyMaxFlowRetryAttempts = "pipelines.maxFlowRetryAttempts"
	keyTimeZone             = "spark.sql.session.timeZone"
)

const defaultFlowRetries = 2

// settings are the pipeline's own configuration keys, parsed.
type settings struct {
	maxFlowRetries int
}

// readSettings parses the keys under `pipelines.` and `spark.`. One it does
// not know is an error, since a misspelt setting would have no effect and
// nobody would notice. at adds the place of a key to an error.
func readSettings(conf map[string]string, at func(key string, e *fault.Error) *fault.Error) (settings, error) {
	s := settings{maxFlowRetries: defaultFlowRetries}
	known := map[string]func(string) *fault.Error{
		keyMaxFlowRetryAttempts: func(v string) *fault.Error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return fault.New("INVALID_SPEC", "%s is %q; it must be a whole number from 0", keyMaxFlowRetryAttempts, v)
			}
			s.maxFlowRetries = n
			return nil
		},
		keyTimeZone: func(v string) *fault.Error {
			if !strings.EqualFold(v, "UTC") && !strings.EqualFold(v, "Etc/UTC") {
				return fault.New("NOT_SUPPORTED", "%s is %q; sessions run in UTC only", keyTimeZone, v)
			}
			return nil
		},
	}
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		if key == "" || strings.ContainsAny(key, "{}$\x00\n") {
			return s, at(key, fault.New("INVALID_SPEC", "configuration key %q: a key is text without $, { and }", key))
		}
		if read, ok := known[key]; ok {
			if e := read(conf[key]); e != nil {
				return s, at(key, e)
			}
			continue
		}
		if strings.HasPrefix(key, "pipelines.") || strings.HasPrefix(key, "spark.") {
			e := fault.New("NOT_SUPPORTED", "the setting %q has no effect here", key)
			return s, at(key, suggest(e, key, []string{keyMaxFlowRetryAttempts, keyTimeZone}, "Names of your own must not start with pipelines. or spark."))
		}
	}
	return s, nil
}

// readLimits reads limits of modules by their names in package plugin.
func readLimits(f *yamlFile, n ast.Node) (plugin.Limits, error) {
	settings := map[string]string{}
	handlers := map[string]func(ast.Node) error{}
	for _, name := range plugin.LimitNames() {
		handlers[name] = func(n ast.Node) error {
			value := n.GetToken().Value
			switch n.(type) {
			case *ast.IntegerNode, *ast.FloatNode:
			default:
				var err error
				if value, err = f.requiredText(n, "limit "+name); err != nil {
					return err
				}
			}
			if _, err := plugin.ParseLimits(map[string]string{name: value}); err != nil {
				var e *plugin.Error
				if errors.As(err, &e) {
					return f.errAt(n, "%s", e.Message)
				}
				return f.errAt(n, "%v", err)
			}
			settings[name] = value
			return nil
		}
	}
	if err := f.fields(n, "limits", handlers); err != nil {
		return plugin.Limits{}, err
	}
	return plugin.ParseLimits(settings)
}

// narrow gives the part of a configuration that the grants cover.
func narrow(conf map[string]string, grants []string) map[string]string {
	out := map[string]string{}
	for k, v := range conf {
		if abi.Granted(grants, k) {
			out[k] = v
		}
	}
	return out
}

// substitute replaces ${key} by configuration values, as pipeline SQL does.
func substitute(text string, conf map[string]string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		key, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fault.New("INVALID_CONFIGURATION_REFERENCE", "%q has no closing }", "${"+rest)
		}
		value, ok := conf[key]
		if !ok {
			return "", fault.New("CONFIGURATION_NOT_FOUND", "the configuration has no key %q", key).
				WithHint("Set it under configuration, or with --conf %s=…", key)
		}
		b.WriteString(value)
		text = after
	}
}
