package stream

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// deltaOptions are the options of a stream of a table, in Spark's spelling.
type deltaOptions struct {
	maxFiles          int
	maxBytes          int64
	skipChangeCommits bool
	ignoreDeletes     bool
	feed              bool // readChangeFeed
	start             startOption
}

// startOption says where a stream without a history begins; its zero value is
// the table's rows of now.
type startOption struct {
	version *int64
	latest  bool // behind the newest version
	time    *time.Time
}

// tableOptions lists what a stream of a table knows, for messages.
const tableOptions = "maxFilesPerTrigger, maxBytesPerTrigger, skipChangeCommits, ignoreDeletes, readChangeFeed, startingVersion and startingTimestamp"

// CheckDeltaOptions tells whether NewDeltaSource takes the options, without a table.
func CheckDeltaOptions(name string, options map[string]string) error {
	_, err := parseDeltaOptions(name, options)
	return err
}

// parseDeltaOptions reads the options of the stream of a table that messages call name.
func parseDeltaOptions(name string, options map[string]string) (deltaOptions, error) {
	o := deltaOptions{maxFiles: 1000}
	where := fault.Where{Dataset: name}
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		lower := strings.ToLower(key)
		if seen[lower] {
			return o, fault.New("INVALID_OPTION", "option %s is set twice, in two spellings", key).At(where)
		}
		seen[lower] = true
		if err := o.take(lower, strings.TrimSpace(options[key])); err != nil {
			if fault.CodeOf(err) == "" {
				err = fault.Wrap(err, "INVALID_OPTION", "option %s=%q", key, options[key])
			}
			return o, fault.Place(err, "INVALID_OPTION", where)
		}
	}
	switch {
	case o.start.time != nil && (o.start.latest || o.start.version != nil):
		return o, fault.New("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET", "startingVersion and startingTimestamp are both set").
			WithHint("Set one of them").At(where)
	case o.feed && (o.skipChangeCommits || o.ignoreDeletes):
		return o, fault.New("INVALID_OPTION", "readChangeFeed delivers every change; skipChangeCommits and ignoreDeletes leave changes out").
			WithHint("Set one or the other, and filter the feed by _change_type where needed").At(where)
	}
	return o, nil
}

// take reads one option, its name in lower case.
func (o *deltaOptions) take(key, value string) (err error) {
	switch key {
	case "maxfilespertrigger":
		o.maxFiles, err = strconv.Atoi(value)
		if err == nil && o.maxFiles <= 0 {
			err = strconv.ErrRange
		}
	case "maxbytespertrigger":
		o.maxBytes, err = parseBytes(value)
	case "skipchangecommits":
		o.skipChangeCommits, err = strconv.ParseBool(value)
	case "ignoredeletes":
		o.ignoreDeletes, err = strconv.ParseBool(value)
	case "readchangefeed", "readchangedata":
		o.feed, err = strconv.ParseBool(value)
	case "startingversion":
		err = o.start.parseVersion(value)
	case "startingtimestamp":
		o.start.time, err = parseInstant(value)
	case "failondataloss":
		var fails bool
		if fails, err = strconv.ParseBool(value); err == nil && !fails {
			err = fault.New("NOT_SUPPORTED", "failOnDataLoss=false would pass over lost changes in silence").
				WithHint("Leave it out; after a loss run a full refresh, or give the flow another name and a startingVersion")
		}
	case "ignorechanges":
		var ignores bool
		if ignores, err = strconv.ParseBool(value); err == nil && ignores {
			err = fault.New("NOT_SUPPORTED", "ignoreChanges would deliver rows of rewritten files again").
				WithHint("Set skipChangeCommits to leave versions out that change rows, or readChangeFeed to receive the changes")
		}
	case "endingversion", "endingtimestamp":
		err = fault.New("INVALID_OPTION", "a stream has no end: %s is for reading in a batch", key).
			WithHint("Leave it out, or read the changes with table_changes() in a materialized view")
	default:
		err = fault.New("UNKNOWN_OPTION", "a stream of a table has no option %q", key).WithHint("It knows %s", tableOptions)
	}
	return err
}

func (o *startOption) parseVersion(value string) error {
	if strings.EqualFold(value, "latest") {
		o.latest = true
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	o.version = &n
	return err
}

// instantForms are the spellings of a time; one without a zone is in UTC.
var instantForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", time.DateOnly}

func parseInstant(value string) (*time.Time, error) {
	var first error
	for _, form := range instantForms {
		at, err := time.Parse(form, value)
		if err == nil {
			return &at, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// parseBytes reads a size such as 100, 64k or 10g.
func parseBytes(s string) (int64, error) {
	s = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "b")
	factor := int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgt", s[n-1]); i >= 0 {
			factor = 1 << (10 * (i + 1))
			s = s[:n-1]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && (n <= 0 || n > (1<<62)/factor) {
		err = strconv.ErrRange
	}
	return n * factor, err
}
