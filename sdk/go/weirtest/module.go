//go:build !wasip1

package weirtest

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/weir-data/weir/sdk/go/internal/host"
	"github.com/weir-data/weir/sdk/go/internal/seam"
)

// Module is the module under test with a configuration.
type Module struct {
	// Context is what Call.Context reads; its JSON names are those of the ABI.
	Context Context
	// State is what a stateful function reads and leaves.
	State []byte
	// Answers are what Call.Query gives, by the SQL text: weirtest runs no SQL.
	Answers map[string]*Input

	t        testing.TB
	conf     map[string]string
	manifest manifest
	text     []byte
}

// Context is a call context.
type Context struct {
	Pipeline       string   `json:"pipeline"`
	UpdateID       string   `json:"update_id"`
	Flow           string   `json:"flow"`
	BatchID        int64    `json:"batch_id"`
	Task           int      `json:"task"`
	FullRefresh    bool     `json:"full_refresh"`
	BatchTimestamp string   `json:"batch_timestamp"` // RFC 3339
	LatestVersion  *Version `json:"latest_version,omitempty"`
}

// Version is a snapshot's version.
type Version struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// manifest is what this package needs of a module's manifest.
type manifest struct {
	Functions []function `json:"functions"`
}

type function struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Inputs []struct {
		Dataset string    `json:"dataset"`
		Columns *[]string `json:"columns"`
	} `json:"inputs"`
	RowAligned  bool             `json:"row_aligned"`
	Passthrough json.RawMessage  `json:"passthrough"`
	Output      *json.RawMessage `json:"output"`
	Outputs     []any            `json:"outputs"`
	Reuse       bool             `json:"reuse"`
	Conf        []string         `json:"conf"`

	renames [][2]string
}

// running lets one test at a time have the module: its declarations and globals are the process's.
var running sync.Mutex

// Load runs the module's definitions with a configuration; a mistake in them fails the test.
func Load(t testing.TB, conf map[string]string) *Module {
	t.Helper()
	m, err := Describe(conf)
	if err != nil {
		t.Fatal(err)
	}
	m.t = t
	return m
}

// Describe is Load for those who want to see the error.
func Describe(conf map[string]string) (*Module, error) {
	running.Lock()
	defer running.Unlock()
	h := &hostOf{conf: conf, granted: []string{"*"}}
	defer host.Use(host.Use(h))
	seam.Reset()
	if status := seam.Describe(); status != 0 {
		return nil, errors.New(h.failure)
	}
	m := &Module{conf: maps.Clone(conf), text: h.result, Context: Context{Pipeline: "test", Flow: "test", BatchTimestamp: "2026-07-30T06:00:00.000000Z"}}
	if err := json.Unmarshal(m.text, &m.manifest); err != nil {
		return nil, err
	}
	for i := range m.manifest.Functions {
		f := &m.manifest.Functions[i]
		if err := f.readRenames(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Manifest gives the manifest's JSON.
func (m *Module) Manifest() []byte { return m.text }

// readRenames keeps the order of the passthrough object.
func (f *function) readRenames() error {
	if len(f.Passthrough) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(f.Passthrough)))
	var words []string
	for {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		if s, ok := tok.(string); ok {
			words = append(words, s)
		}
	}
	if len(words)%2 != 0 {
		return errors.New("passthrough is not an object of texts")
	}
	for i := 0; i < len(words); i += 2 {
		f.renames = append(f.renames, [2]string{words[i], words[i+1]})
	}
	return nil
}

// granted says whether a list of keys or "prefix.*" covers a key.
func granted(list []string, key string) bool {
	for _, pattern := range list {
		if pattern == "*" || pattern == key {
			return true
		}
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasSuffix(prefix, ".") && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
