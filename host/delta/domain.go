package delta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// The domains that belong to features we write.
const (
	clusteringDomainName  = "delta.clustering"
	rowTrackingDomainName = "delta.rowTracking"
)

// planDomains adds the domains that the commit sets or takes away. All others stay.
func (c *Commit) planDomains(a *attempt) error {
	for i, d := range c.Domains {
		switch {
		case d.Domain == "":
			return fault.New("DELTA_INVALID_DOMAIN", "a metadata domain has no name")
		case strings.HasPrefix(d.Domain, "delta.") && d.Domain != clusteringDomainName:
			return fault.New("DELTA_INVALID_DOMAIN", "domain %q belongs to the protocol and follows from what the commit does", d.Domain).
				WithHint("Name domains of your own after yourself, such as com.example.name")
		case slices.ContainsFunc(c.Domains[:i], func(o DomainMetadata) bool { return o.Domain == d.Domain }):
			return fault.New("DELTA_INVALID_DOMAIN", "domain %q is set twice", d.Domain)
		}
		if d.Removed {
			var have DomainMetadata
			ok := false
			if a.base != nil {
				have, ok = a.base.domains[d.Domain]
			}
			if !ok {
				continue // it is gone already
			}
			d.Configuration = have.Configuration // a removal carries what it removes
		}
		a.actions.domains = append(a.actions.domains, d)
	}
	return nil
}

// cluster sets the domain that names the columns by which readers may expect
// the files to be clustered, as the files name them.
func (a *attempt) cluster(columns [][]string) error {
	conf, err := json.Marshal(map[string]any{"clusteringColumns": append([][]string{}, columns...)})
	if err != nil {
		return fault.Wrap(err, "DELTA_COMMIT_FAILED", "clustering columns")
	}
	a.actions.domains = append(a.actions.domains, DomainMetadata{Domain: clusteringDomainName, Configuration: string(conf)})
	return nil
}

// clusterColumns names the clustering columns, dotted, in the schema's names.
func (s *Snapshot) clusterColumns() []string {
	var out []string
	for _, stored := range s.clusterPaths() {
		path := namedPath(s.schema, stored, s.mapping != "none")
		if path == nil {
			path = stored
		}
		out = append(out, strings.Join(path, "."))
	}
	return out
}

// clusterPaths reads the domain that names the clustering columns, as files name them.
func (s *Snapshot) clusterPaths() [][]string {
	var conf struct {
		Columns [][]string `json:"clusteringColumns"`
	}
	if d, ok := s.domains[clusteringDomainName]; !ok || json.Unmarshal([]byte(d.Configuration), &conf) != nil {
		return nil
	}
	return conf.Columns
}
