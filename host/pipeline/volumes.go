package pipeline

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage/cloud"
)

// volumesRoot begins the paths of volumes in Unity Catalog.
const volumesRoot = "/Volumes/"

// readVolumes reads which folder, here or in a bucket, a volume's name means.
func (s *Spec) readVolumes(f *yamlFile, n ast.Node) error {
	m, err := f.mapping(n, "volumes")
	if err != nil {
		return err
	}
	s.Volumes = map[string]string{}
	for _, kv := range m.Values {
		key, err := f.key(kv)
		if err != nil {
			return err
		}
		written := key
		if key, err = expandEnv(key, f.env); err != nil {
			return f.errAt(kv.Key, "volume %s: %v", written, err)
		}
		parts := strings.Split(strings.ToLower(key), ".")
		if len(parts) != 3 || slices.ContainsFunc(parts, func(p string) bool { return !isFolderName(p) }) {
			return f.errAt(kv.Key, "volume %q must be named by catalog.schema.volume", key)
		}
		name := strings.Join(parts, ".")
		if _, twice := s.Volumes[name]; twice {
			return f.errAt(kv.Key, "volume %q is given twice", key)
		}
		folder, err := f.requiredText(kv.Value, "volume "+key)
		if err != nil {
			return err
		}
		if !cloud.IsURL(folder) {
			folder = s.abs(strings.TrimPrefix(folder, "file://"))
		}
		s.Volumes[name] = folder
	}
	return nil
}

// locate gives the path of files as this machine knows it: /Volumes/c/s/v/… and
// dbfs:/Volumes/c/s/v/… are below the folder of the volume.
func (s *Spec) locate(path string) (string, error) {
	inVolumes := path
	for _, scheme := range []string{"dbfs://", "dbfs:", "file://", "file:"} {
		if rest, ok := cutPrefixFold(path, scheme); ok && strings.HasPrefix(rest, "/") {
			inVolumes = rest
			break
		}
	}
	rest, ok := cutPrefixFold(inVolumes, volumesRoot)
	if !ok {
		if _, dbfs := cutPrefixFold(path, "dbfs:"); dbfs {
			return "", fault.New("NOT_SUPPORTED", "path %s: there is no DBFS here", path).WithHint("Name a folder, or a volume that the spec maps to one")
		}
		return path, nil
	}
	parts := strings.SplitN(rest, "/", 4)
	for i, p := range parts {
		if i < 3 && (p == "" || p == ".." || strings.ContainsAny(p, "*?[{")) || len(parts) < 3 {
			return "", fault.New("INVALID_VOLUME_PATH", "path %s must begin with /Volumes/catalog/schema/volume", path)
		}
	}
	name := strings.ToLower(strings.Join(parts[:3], "."))
	folder, ok := s.Volumes[name]
	if !ok {
		e := fault.New("VOLUME_NOT_FOUND", "path %s: the spec maps no folder to the volume %s", path, name)
		return "", suggest(e, name, slices.Sorted(maps.Keys(s.Volumes)), "Write volumes: {"+name+": ./folder} in the spec")
	}
	if len(parts) == 3 {
		return folder, nil
	}
	inside := parts[3]
	if !filepath.IsLocal(strings.Trim(inside, "/")) && strings.Trim(inside, "/") != "" {
		return "", fault.New("INVALID_VOLUME_PATH", "path %s leads out of the volume", path)
	}
	return strings.TrimSuffix(folder, "/") + "/" + inside, nil
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
