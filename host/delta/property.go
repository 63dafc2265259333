package delta

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// propertyKind says which values a table property may have.
type propertyKind struct {
	name string
	fits func(value string) bool
	hint string
}

var (
	boolProperty = propertyKind{"true or false", oneOf("true", "false"), "Use true or false"}
	timeProperty = propertyKind{"a duration", func(v string) bool { _, ok := parseInterval(v); return ok }, "Write it as 'interval 30 days'; months have no fixed length"}
	sizeProperty = propertyKind{"a size", func(v string) bool {
		_, err := targetSize(map[string]string{"delta.targetFileSize": v})
		return err == nil
	}, "Write it as 128mb"}
	textProperty = propertyKind{"a text", func(string) bool { return true }, ""}
)

func oneOf(words ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(words, strings.ToLower(v)) }
}

func wordProperty(list ...string) propertyKind {
	lower := make([]string, len(list))
	for i, w := range list {
		lower[i] = strings.ToLower(w)
	}
	return propertyKind{"one of " + strings.Join(list, ", "), oneOf(lower...), "Use one of " + strings.Join(list, ", ")}
}

func countProperty(least int64) propertyKind {
	return propertyKind{"a number", func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n >= least
	}, "Use a whole number, at least " + strconv.FormatInt(least, 10)}
}

// knownProperties are the names below "delta." that Delta tables know, in the
// spelling that readers look for: what another name says would be ignored.
var knownProperties = map[string]propertyKind{
	"appendOnly":                         boolProperty,
	"autoOptimize":                       boolProperty,
	"autoOptimize.autoCompact":           wordProperty("true", "false", "auto", "legacy"),
	"autoOptimize.optimizeWrite":         boolProperty,
	"checkpoint.writeStatsAsJson":        boolProperty,
	"checkpoint.writeStatsAsStruct":      boolProperty,
	"checkpointInterval":                 countProperty(1),
	"checkpointPolicy":                   wordProperty("classic", "v2"),
	"checkpointRetentionDuration":        timeProperty,
	"columnMapping.mode":                 wordProperty("none", "name", "id"),
	"dataSkippingNumIndexedCols":         countProperty(-1),
	"dataSkippingStatsColumns":           textProperty,
	"deletedFileRetentionDuration":       timeProperty,
	"enableChangeDataFeed":               boolProperty,
	"enableDeletionVectors":              boolProperty,
	"enableExpiredLogCleanup":            boolProperty,
	"enableFullRetentionRollback":        boolProperty,
	"enableIcebergCompatV1":              boolProperty,
	"enableIcebergCompatV2":              boolProperty,
	"enableInCommitTimestamps":           boolProperty,
	"enableRowTracking":                  boolProperty,
	"enableTypeWidening":                 boolProperty,
	"enableVariantShredding":             boolProperty,
	"enableVariantType":                  boolProperty,
	"isolationLevel":                     wordProperty("Serializable", "WriteSerializable"),
	"logRetentionDuration":               timeProperty,
	"minReaderVersion":                   countProperty(1),
	"minWriterVersion":                   countProperty(1),
	"parquet.compression.codec":          textProperty,
	"randomPrefixLength":                 countProperty(1),
	"randomizeFilePrefixes":              boolProperty,
	"rowTrackingSuspended":               boolProperty,
	"sampleRetentionDuration":            timeProperty,
	"setTransactionRetentionDuration":    timeProperty,
	"targetFileSize":                     sizeProperty,
	"tuneFileSizesForRewrites":           boolProperty,
	"universalFormat.enabledFormats":     textProperty,
	"universalFormat.compatibility.mode": textProperty,
}

// CheckProperty holds a property below "delta." to the names and values that
// Delta tables know, and gives its name in their spelling. Other properties
// mean nothing to a table and may be anything.
func CheckProperty(key, value string) (string, error) {
	const prefix = "delta."
	if len(key) <= len(prefix) || !strings.EqualFold(key[:len(prefix)], prefix) {
		return key, nil
	}
	rest := key[len(prefix):]
	switch {
	case isConstraint(key):
		return constraintPrefix + key[len(constraintPrefix):], nil
	case len(rest) > len("feature.") && strings.EqualFold(rest[:len("feature.")], "feature."):
		name, err := featureOf(key, value)
		if err != nil {
			return "", err
		}
		return featureProperty + name, nil
	}
	for name, kind := range knownProperties {
		if !strings.EqualFold(name, rest) {
			continue
		}
		if !kind.fits(value) {
			e := fault.New("DELTA_INVALID_PROPERTY", "property %s%s is %q, not %s", prefix, name, value, kind.name)
			if kind.hint != "" {
				e = e.WithHint("%s", kind.hint)
			}
			return "", e
		}
		return prefix + name, nil
	}
	return "", fault.New("DELTA_UNKNOWN_CONFIGURATION", "Unknown configuration was specified: %s", key)
}

// PropertyNames lists the properties that tables know, sorted.
func PropertyNames() []string {
	out := make([]string, 0, len(knownProperties))
	for name := range knownProperties {
		out = append(out, "delta."+name)
	}
	slices.Sort(out)
	return out
}

// Meets tells whether the table has a property with that value, or the protocol
// that the property asks for.
func (s *Snapshot) Meets(key, value string) bool {
	if !ofProtocol(key) {
		have, ok := s.metadata.Configuration[key]
		return ok && have == value
	}
	p, err := s.protocol.atLeast(map[string]string{key: value})
	if err != nil {
		return false
	}
	name, err := featureOf(key, value)
	return err == nil && (name == "" || p.has(name)) && p.equal(s.protocol)
}

// ClusterColumns names the clustering columns; a field of a struct is dotted.
func (s *Snapshot) ClusterColumns() []string { return s.clusterColumns() }

// Generated gives the expression that a column is generated by, "" for none.
func (s *Snapshot) Generated(column string) string {
	if f := s.schema.findFold(column); f != nil {
		return f.metaString(generationKey)
	}
	return ""
}

// CanCluster tells whether columns of a type can order the rows of a table:
// they have statistics, which the order is for.
func CanCluster(t arrow.DataType) bool { return newBounds(t) != nil }
