package delta

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

func TestPropertiesRaiseTheProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		have Protocol
		set  map[string]string
		want string // or the code of the refusal
	}{
		"nothing":              {Protocol{1, 2, nil, nil}, map[string]string{"x": "true"}, "1 2 [] []"},
		"off":                  {Protocol{1, 2, nil, nil}, map[string]string{"delta.enableDeletionVectors": "false"}, "1 2 [] []"},
		"a legacy feature":     {Protocol{1, 2, nil, nil}, map[string]string{"delta.enableChangeDataFeed": "TRUE"}, "1 4 [] []"},
		"one with another":     {Protocol{1, 2, nil, nil}, map[string]string{"delta.enableRowTracking": "true"}, "1 7 [] [appendOnly domainMetadata invariants rowTracking]"},
		"by its name":          {Protocol{1, 2, nil, nil}, map[string]string{"delta.feature.deletionVectors": "supported"}, "3 7 [deletionVectors] [appendOnly deletionVectors invariants]"},
		"by another spelling":  {Protocol{1, 1, nil, nil}, map[string]string{"delta.feature.deletionvectors": "enabled"}, "3 7 [deletionVectors] [deletionVectors]"},
		"column mapping stays": {Protocol{2, 5, nil, nil}, map[string]string{"delta.enableDeletionVectors": "true"}, "3 7 [columnMapping deletionVectors] [appendOnly changeDataFeed checkConstraints columnMapping deletionVectors generatedColumns invariants]"},
		"reader 2, writer 7": {Protocol{2, 7, nil, []string{"columnMapping"}}, map[string]string{"delta.enableDeletionVectors": "true"},
			"3 7 [columnMapping deletionVectors] [columnMapping deletionVectors]"},
		"twice":           {Protocol{3, 7, []string{"deletionVectors"}, []string{"deletionVectors"}}, map[string]string{"delta.enableDeletionVectors": "true"}, "3 7 [deletionVectors] [deletionVectors]"},
		"a version":       {Protocol{1, 2, nil, nil}, map[string]string{"delta.minWriterVersion": "4"}, "1 4 [] []"},
		"a lower version": {Protocol{1, 4, nil, nil}, map[string]string{"delta.minWriterVersion": "2"}, "1 4 [] []"},
		"named features":  {Protocol{1, 2, nil, nil}, map[string]string{"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, "3 7 [] [appendOnly invariants]"},
		"no version":      {Protocol{1, 2, nil, nil}, map[string]string{"delta.minReaderVersion": "x"}, "DELTA_INVALID_PROPERTY"},
		"a later version": {Protocol{1, 2, nil, nil}, map[string]string{"delta.minReaderVersion": "4"}, "DELTA_UNSUPPORTED_FEATURE"},
		"a wrong word":    {Protocol{1, 2, nil, nil}, map[string]string{"delta.feature.clustering": "yes"}, "DELTA_INVALID_PROPERTY"},
		"Iceberg":         {Protocol{1, 2, nil, nil}, map[string]string{"delta.enableIcebergCompatV2": "true"}, "DELTA_UNSUPPORTED_FEATURE"},
		"a catalog":       {Protocol{1, 2, nil, nil}, map[string]string{"delta.feature.catalogManaged": "supported"}, "DELTA_UNSUPPORTED_FEATURE"},
		"unknown":         {Protocol{1, 2, nil, nil}, map[string]string{"delta.feature.liquid": "supported"}, "DELTA_UNSUPPORTED_FEATURE"},
	} {
		p, err := c.have.forTable(&structType{}, c.set, false)
		got := fmt.Sprint(p.MinReaderVersion, p.MinWriterVersion, p.ReaderFeatures, p.WriterFeatures)
		if err != nil {
			got = fault.CodeOf(err)
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
		if err == nil && p.checkReadable() != nil {
			t.Errorf("%s: %v", name, p.checkReadable())
		}
	}
}

// What speaks of the protocol is no property of the table, and an upgrade needs no other change.
func TestFeaturesAreAddedAlone(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.minWriterVersion": "4"}})
	v := f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"delta.feature.deletionVectors": "supported"}})
	e, err := f.table.entry(background, v)
	if err != nil || e.Protocol == nil || e.Metadata != nil || len(f.snapshot().Properties()) != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"a": "1", "b": "2"}})
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"b": "3"}, Unset: []string{"a", "c"}})
	if got := fmt.Sprint(f.snapshot().Properties()); got != "map[b:3]" {
		t.Error(got)
	}
}

func TestWhatATableKeepsForItselfIsNotSet(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: map[string]string{mappingModeKey: "name", enableRowTracking: "true"}})
	s := f.snapshot()
	conf := s.Properties()
	for _, k := range []string{maxColumnIDKey, rowIDNameKey, rowCommitVersionNameKey, enablementVersionKey, enablementTimeKey} {
		_, set := f.table.Commit(background, Commit{Read: s, Properties: map[string]string{k: "7"}})
		_, unset := f.table.Commit(background, Commit{Read: s, Unset: []string{k}})
		if fault.CodeOf(set) != "DELTA_INVALID_PROPERTY" || fault.CodeOf(unset) != "DELTA_INVALID_PROPERTY" {
			t.Errorf("%s: %v, %v", k, set, unset)
		}
	}
	if _, err := f.table.Commit(background, Commit{Read: s, Unset: []string{mappingModeKey}}); fault.CodeOf(err) != "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE" {
		t.Error(err)
	}
	// To say what there is changes nothing.
	v := f.commit(Commit{Read: s, Properties: conf})
	if e, err := f.table.entry(background, v); err != nil || e.Metadata != nil || e.Protocol != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// Features are sets: their order, which differs between a checkpoint of Spark and its commits, makes no other protocol.
func TestProtocolsThatAskForTheSameAreEqual(t *testing.T) {
	p := func(reader, writer int, readers, writers string) *Protocol {
		return &Protocol{MinReaderVersion: reader, MinWriterVersion: writer, ReaderFeatures: strings.Fields(readers), WriterFeatures: strings.Fields(writers)}
	}
	base := p(3, 7, "a b", "a b c")
	for name, c := range map[string]struct {
		other *Protocol
		equal bool
	}{
		"itself":                  {base, true},
		"another order":           {p(3, 7, "b a", "c a b"), true},
		"a feature named twice":   {p(3, 7, "a b b", "a b c"), true},
		"a reader feature less":   {p(3, 7, "a", "a b c"), false},
		"a writer feature more":   {p(3, 7, "a b", "a b c d"), false},
		"another feature":         {p(3, 7, "a b", "a b d"), false},
		"another reader version":  {p(2, 7, "a b", "a b c"), false},
		"another writer version":  {p(3, 6, "a b", "a b c"), false},
		"of readers, not writers": {p(3, 7, "a b c", "a b"), false},
		"none":                    {nil, false},
	} {
		if got := base.equal(c.other); got != c.equal {
			t.Errorf("%s: %v", name, got)
		}
	}
}
