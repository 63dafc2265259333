package delta

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// feature is what we know of a table feature.
type feature struct {
	name   string
	reader bool // must be in readerFeatures, too
	// legacyReader and legacyWriter are the versions that imply it before 3/7; 0 is never.
	legacyReader, legacyWriter int
	read                       bool // we can read tables that use it
	write                      writeRule
}

// writeRule says when a table with the feature may be written.
type writeRule int

const (
	writeNever  writeRule = iota
	writeAlways           // nothing to do, or we do it
	writeUnused           // as long as the table makes no use of it, see usesFeature
)

var features = []feature{
	{"appendOnly", false, 0, 2, true, writeAlways},
	{"invariants", false, 0, 2, true, writeAlways},
	{"checkConstraints", false, 0, 3, true, writeAlways},
	{"changeDataFeed", false, 0, 4, true, writeAlways},
	{"generatedColumns", false, 0, 4, true, writeAlways},
	{"columnMapping", true, 2, 5, true, writeAlways},
	{"identityColumns", false, 0, 6, true, writeUnused},
	{"deletionVectors", true, 0, 0, true, writeAlways},
	{"rowTracking", false, 0, 0, true, writeAlways},
	{"domainMetadata", false, 0, 0, true, writeAlways},
	{"v2Checkpoint", true, 0, 0, true, writeAlways},
	{"timestampNtz", true, 0, 0, true, writeAlways},
	{"typeWidening", true, 0, 0, true, writeAlways},
	{"typeWidening-preview", true, 0, 0, true, writeAlways},
	{"variantType", true, 0, 0, true, writeAlways},
	{"variantType-preview", true, 0, 0, true, writeAlways},
	{"variantShredding-preview", true, 0, 0, true, writeAlways},
	{"variantShredding", true, 0, 0, true, writeAlways},
	{"clustering", false, 0, 0, true, writeAlways},
	{"inCommitTimestamp", false, 0, 0, true, writeAlways},
	{"vacuumProtocolCheck", true, 0, 0, true, writeAlways},
	{"allowColumnDefaults", false, 0, 0, true, writeAlways},
	{"icebergCompatV1", false, 0, 0, true, writeNever},
	{"icebergCompatV2", false, 0, 0, true, writeNever},
}

// featureAliases are other spellings found in real tables.
var featureAliases = map[string]string{"timestampWithoutTimezone": "timestampNtz"}

func findFeature(name string) *feature {
	if alias, ok := featureAliases[name]; ok {
		name = alias
	}
	for i := range features {
		if features[i].name == name {
			return &features[i]
		}
	}
	return nil
}

func unsupported(format string, args ...any) *fault.Error {
	return fault.New("DELTA_UNSUPPORTED_FEATURE", format, args...)
}

// checkReadable refuses protocols that are invalid or ask for more than we can read.
func (p *Protocol) checkReadable() error {
	switch {
	case p.MinReaderVersion < 1 || p.MinWriterVersion < 1:
		return fault.New("DELTA_INVALID_PROTOCOL", "reader version %d and writer version %d", p.MinReaderVersion, p.MinWriterVersion)
	case p.ReaderFeatures != nil && p.MinReaderVersion != 3:
		return fault.New("DELTA_INVALID_PROTOCOL", "readerFeatures with reader version %d", p.MinReaderVersion)
	case p.WriterFeatures != nil && p.MinWriterVersion != 7:
		return fault.New("DELTA_INVALID_PROTOCOL", "writerFeatures with writer version %d", p.MinWriterVersion)
	case p.MinReaderVersion > 3:
		return unsupported("the table needs reader version %d", p.MinReaderVersion)
	}
	for _, name := range p.ReaderFeatures {
		if f := findFeature(name); f == nil || !f.read {
			return unsupported("the table needs the reader feature %q", name)
		}
	}
	return nil
}

// names lists the features the table has, implied ones included, sorted.
func (p *Protocol) names() []string {
	out := append(slices.Clone(p.ReaderFeatures), p.WriterFeatures...)
	for i := range features {
		f := &features[i]
		legacyW := p.MinWriterVersion < 7 && f.legacyWriter > 0 && p.MinWriterVersion >= f.legacyWriter
		legacyR := p.MinReaderVersion == 2 && f.legacyReader == 2
		if legacyW || legacyR {
			out = append(out, f.name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// equal tells whether two protocols ask for the same. The features are sets,
// which Spark writes in another order into each checkpoint. Versions that say
// nothing of the protocol have none, which equals none.
func (p *Protocol) equal(o *Protocol) bool {
	if p == nil || o == nil {
		return p == o
	}
	set := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	return p.MinReaderVersion == o.MinReaderVersion && p.MinWriterVersion == o.MinWriterVersion &&
		slices.Equal(set(p.ReaderFeatures), set(o.ReaderFeatures)) && slices.Equal(set(p.WriterFeatures), set(o.WriterFeatures))
}

func (p *Protocol) has(name string) bool { return slices.Contains(p.names(), name) }

// checkWritable refuses tables that ask for more than we can write.
func checkWritable(p *Protocol, m *Metadata, schema *structType) error {
	if p.MinWriterVersion > 7 {
		return unsupported("the table needs writer version %d", p.MinWriterVersion)
	}
	for _, name := range p.names() {
		f := findFeature(name)
		switch {
		case f == nil || f.write == writeNever:
			return unsupported("the table needs the writer feature %q", name)
		case f.write == writeUnused:
			if use := usesFeature(name, m, schema); use != "" {
				return unsupported("the table uses the writer feature %q (%s)", name, use)
			}
		}
	}
	return checkFeedColumns(m, schema)
}

// checkFeedColumns keeps the columns of the change data feed apart from those of the table.
func checkFeedColumns(m *Metadata, schema *structType) error {
	if !isTrue(m, "delta.enableChangeDataFeed") {
		return nil
	}
	for _, name := range []string{ChangeTypeColumn, CommitVersionColumn, CommitTimestampColumn} {
		if f := schema.findFold(name); f != nil {
			return fault.New("DELTA_RESERVED_COLUMN", "the table has a column %q, a name that its change data feed needs", f.name).
				WithHint("Rename the column, or set delta.enableChangeDataFeed to false")
		}
	}
	return nil
}

// usesFeature tells where the table makes use of a feature, or "".
func usesFeature(name string, m *Metadata, schema *structType) string {
	switch name {
	case "identityColumns":
		return fieldWith(schema, "delta.identity.")
	}
	return ""
}

// fieldWith finds a field whose metadata has a key of that prefix.
func fieldWith(t dataType, prefix string) string {
	switch t := t.(type) {
	case *structType:
		for _, f := range t.fields {
			for k := range f.meta {
				if strings.HasPrefix(k, prefix) {
					return "column " + f.name
				}
			}
			if inner := fieldWith(f.typ, prefix); inner != "" {
				return inner
			}
		}
	case *arrayType:
		return fieldWith(t.elem, prefix)
	case *mapType:
		if inner := fieldWith(t.key, prefix); inner != "" {
			return inner
		}
		return fieldWith(t.value, prefix)
	}
	return ""
}

// need raises p so that it has the feature, and what that cannot be without, as low as possible.
func (p Protocol) need(name string) Protocol {
	if more, ok := featureNeeds[name]; ok {
		p = p.need(more)
	}
	if p.has(name) || p.has(name+"-preview") {
		return p
	}
	f := findFeature(name)
	if f.legacyWriter > 0 && p.MinWriterVersion < 7 && f.legacyWriter <= 4 && p.MinReaderVersion < 3 {
		// The versions up to 4 imply only what we can write.
		p.MinWriterVersion = max(p.MinWriterVersion, f.legacyWriter)
		return p
	}
	p = p.named()
	p.WriterFeatures = withName(p.WriterFeatures, f.name)
	if f.reader {
		if p.MinReaderVersion == 2 { // beside writer version 7 that is legal, and means column mapping
			p.ReaderFeatures = withName(p.ReaderFeatures, "columnMapping")
		}
		p.MinReaderVersion = 3
		p.ReaderFeatures = withName(p.ReaderFeatures, f.name)
	}
	return p
}

// named gives p with its writer features listed instead of implied by the version.
func (p Protocol) named() Protocol {
	if p.MinWriterVersion < 7 {
		p.WriterFeatures = append([]string{}, p.names()...)
		p.MinWriterVersion = 7
		if p.MinReaderVersion == 2 {
			p.ReaderFeatures = []string{"columnMapping"}
			p.MinReaderVersion = 3
		}
	}
	return p
}

func withName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	names = append(slices.Clone(names), name)
	slices.Sort(names)
	return names
}

// propertyFeatures are the table properties that ask for a feature when true.
var propertyFeatures = map[string]string{
	"delta.appendonly":               "appendOnly",
	"delta.enablechangedatafeed":     "changeDataFeed",
	"delta.enabledeletionvectors":    "deletionVectors",
	"delta.enableincommittimestamps": "inCommitTimestamp",
	"delta.enablerowtracking":        "rowTracking",
	"delta.enabletypewidening":       "typeWidening",
	"delta.enableicebergcompatv1":    "icebergCompatV1",
	"delta.enableicebergcompatv2":    "icebergCompatV2",
	"delta.enablevarianttype":        "variantType",
	"delta.enablevariantshredding":   "variantShredding",
	"delta.checkpointpolicy=v2":      "v2Checkpoint",
	"delta.columnmapping.mode=name":  "columnMapping",
	"delta.columnmapping.mode=id":    "columnMapping",
}

// featureNeeds are the features that another one cannot be without.
var featureNeeds = map[string]string{
	"rowTracking":      "domainMetadata",
	"clustering":       "domainMetadata",
	"variantShredding": "variantType",
}

// The properties that speak of the protocol: they change it and are not kept.
const (
	featureProperty   = "delta.feature."
	minReaderProperty = "delta.minreaderversion"
	minWriterProperty = "delta.minwriterversion"
)

func ofProtocol(property string) bool {
	key := strings.ToLower(property)
	return strings.HasPrefix(key, featureProperty) || key == minReaderProperty || key == minWriterProperty
}

// forTable gives the lowest protocol, not below p, for a schema and properties
// that we are about to write. What we cannot write is refused by name.
func (p Protocol) forTable(schema *structType, properties map[string]string, clustered bool) (Protocol, error) {
	if containsType(schema, "timestamp_ntz") {
		p = p.need("timestampNtz")
	}
	if containsType(schema, "variant") {
		p = p.need("variantType")
	}
	if clustered {
		p = p.need("clustering")
	}
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		name, err := featureOf(k, properties[k])
		if err != nil {
			return p, err
		}
		if name == "" {
			continue
		}
		f := findFeature(name)
		if f == nil || f.write == writeNever {
			return p, unsupported("property %s = %s asks for the feature %q, which cannot be written", k, properties[k], name)
		}
		p = p.need(name)
	}
	return p.atLeast(properties)
}

// featureOf names the feature that a property asks for, "" for none.
func featureOf(property, value string) (string, error) {
	key, value := strings.ToLower(property), strings.ToLower(value)
	if isConstraint(key) {
		return "checkConstraints", nil
	}
	if strings.HasPrefix(key, featureProperty) {
		if value != "supported" && value != "enabled" {
			return "", fault.New("DELTA_INVALID_PROPERTY", "property %s is %q", property, value).WithHint("Set it to supported")
		}
		for i := range features {
			if strings.EqualFold(features[i].name, key[len(featureProperty):]) {
				return features[i].name, nil
			}
		}
		return property[len(featureProperty):], nil
	}
	if name, ok := propertyFeatures[key]; ok && value == "true" {
		return name, nil
	}
	return propertyFeatures[key+"="+value], nil
}

// atLeast raises p to the versions that the properties ask for.
func (p Protocol) atLeast(properties map[string]string) (Protocol, error) {
	for k, v := range properties {
		key := strings.ToLower(k)
		if key != minReaderProperty && key != minWriterProperty {
			continue
		}
		n, err := strconv.Atoi(v)
		most := map[string]int{minReaderProperty: 3, minWriterProperty: 7}[key]
		if err != nil || n < 1 {
			return p, fault.New("DELTA_INVALID_PROPERTY", "property %s is %q, no version", k, v)
		}
		if n > most {
			return p, unsupported("property %s = %s: the highest version there is, is %d", k, v, most)
		}
		switch {
		case key == minWriterProperty && n == 7 || key == minReaderProperty && n == 3:
			p = p.named()
			if n == 3 && p.MinReaderVersion < 3 {
				p.MinReaderVersion, p.ReaderFeatures = 3, []string{}
			}
		case key == minWriterProperty && p.MinWriterVersion < 7:
			p.MinWriterVersion = max(p.MinWriterVersion, n)
		case key == minReaderProperty && p.MinReaderVersion < 3 && n == 2:
			p = p.need("columnMapping")
		}
	}
	return p, nil
}

// forColumns raises p to what the columns of a new table ask for by their metadata.
func (p Protocol) forColumns(schema *structType) Protocol {
	for key, feature := range map[string]string{invariantKey: "invariants", generationKey: "generatedColumns", defaultKey: "allowColumnDefaults"} {
		if fieldWith(schema, key) != "" {
			p = p.need(feature)
		}
	}
	return p
}

func containsType(t dataType, name string) bool {
	switch t := t.(type) {
	case *primitive:
		return t.name == name
	case *structType:
		return slices.ContainsFunc(t.fields, func(f *field) bool { return containsType(f.typ, name) })
	case *arrayType:
		return containsType(t.elem, name)
	case *mapType:
		return containsType(t.key, name) || containsType(t.value, name)
	}
	return false
}

// mappingMode gives "name", "id" or "none": how the schema's columns are found in the files.
func mappingMode(p *Protocol, m *Metadata) (string, error) {
	mode := m.Configuration["delta.columnMapping.mode"]
	// Some tables list the feature for readers only, others for writers only,
	// both against the protocol. Their files are mapped all the same, and to read
	// them by name would give NULLs.
	if mode == "" || mode == "none" || !(p.MinReaderVersion == 2 || p.has("columnMapping")) {
		return "none", nil
	}
	if mode != "name" && mode != "id" {
		return "", unsupported("column mapping mode %q", mode)
	}
	return mode, nil
}
