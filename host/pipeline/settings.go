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
	keyMaxFlowRetryAttempts   = "pipelines.maxFlowRetryAttempts"
	keyNumUpdateRetryAttempts = "pipelines.numUpdateRetryAttempts"
	keyTimeZone               = "spark.sql.session.timeZone"
)

// How often a flow and an update are tried again, as in Lakeflow.
const (
	defaultFlowRetries   = 2
	defaultUpdateRetries = 5
)

// settings are the pipeline's own configuration keys, parsed.
type settings struct {
	maxFlowRetries   int
	maxUpdateRetries int
}

// ignoredSettings are keys of Spark and Lakeflow that only say how a cluster
// does its work; with a dot at the end, all keys that begin so.
var ignoredSettings = map[string]string{
	"pipelines.clusterShutdown.delay":      "there is no cluster",
	"pipelines.trigger.interval":           "an update runs until nothing new is left",
	"spark.default.parallelism":            "work is cut to the processors of the machine",
	"spark.sql.shuffle.partitions":         "work is cut to the processors of the machine",
	"spark.sql.files.maxPartitionBytes":    "work is cut to the processors of the machine",
	"spark.sql.autoBroadcastJoinThreshold": "there is one machine",
	"spark.sql.adaptive.":                  "DuckDB plans the queries",
	"spark.databricks.adaptive.":           "DuckDB plans the queries",
	"spark.databricks.io.cache.":           "files are read where they are",
	"spark.databricks.photon.":             "DuckDB runs the queries",
	"spark.dynamicAllocation.":             "there is one machine",
	"spark.driver.":                        "there is one machine",
	"spark.executor.":                      "there is one machine",
	"spark.memory.":                        "memory_limit says how much memory is used",
	"spark.shuffle.":                       "there is one machine",
	"spark.sql.streaming.stateStore.":      "streams keep no unbounded state",
}

// ignoredSetting gives why a key has no effect, or "" when it is none of those.
func ignoredSetting(key string) string {
	if why, ok := ignoredSettings[key]; ok {
		return why
	}
	for prefix, why := range ignoredSettings {
		if strings.HasSuffix(prefix, ".") && strings.HasPrefix(key, prefix) {
			return why
		}
	}
	return ""
}

// readSettings parses the keys under `pipelines.` and `spark.`. One it does
// not know is an error, since a misspelt setting would have no effect and
// nobody would notice. at adds the place of a key to an error, line gives it.
func (s *Spec) readSettings(at func(key string, e *fault.Error) *fault.Error, line func(key string) int) error {
	s.settings = settings{maxFlowRetries: defaultFlowRetries, maxUpdateRetries: defaultUpdateRetries}
	if s.Development {
		s.settings = settings{}
	}
	count := func(key string, to *int) func(string) *fault.Error {
		return func(v string) *fault.Error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return fault.New("INVALID_SPEC", "%s is %q; it must be a whole number from 0", key, v)
			}
			*to = n
			return nil
		}
	}
	known := map[string]func(string) *fault.Error{
		keyMaxFlowRetryAttempts:   count(keyMaxFlowRetryAttempts, &s.settings.maxFlowRetries),
		keyNumUpdateRetryAttempts: count(keyNumUpdateRetryAttempts, &s.settings.maxUpdateRetries),
		keyTimeZone: func(v string) *fault.Error {
			if !strings.EqualFold(v, "UTC") && !strings.EqualFold(v, "Etc/UTC") {
				return fault.New("NOT_SUPPORTED", "%s is %q; sessions run in UTC only", keyTimeZone, v)
			}
			return nil
		},
	}
	for _, key := range slices.Sorted(maps.Keys(s.Configuration)) {
		if key == "" || strings.ContainsAny(key, "{}$\x00\n") {
			return at(key, fault.New("INVALID_SPEC", "configuration key %q: a key is text without $, { and }", key))
		}
		if read, ok := known[key]; ok {
			if e := read(s.Configuration[key]); e != nil {
				return at(key, e)
			}
			continue
		}
		if why := ignoredSetting(key); why != "" {
			s.ignore(key, why, line(key))
			continue
		}
		if strings.HasPrefix(key, "pipelines.") || strings.HasPrefix(key, "spark.") {
			e := fault.New("NOT_SUPPORTED", "the setting %q has no effect here", key)
			return at(key, suggest(e, key, slices.Sorted(maps.Keys(known)), "Names of your own must not start with pipelines. or spark."))
		}
	}
	return nil
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

// granted gives a module its part of the configuration, with secrets revealed.
func (s *Spec) granted(grants []string) (map[string]string, error) {
	conf := narrow(s.Configuration, grants)
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		value, err := s.secrets.reveal(conf[k])
		if err != nil {
			return nil, err
		}
		conf[k] = value
	}
	return conf, nil
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
