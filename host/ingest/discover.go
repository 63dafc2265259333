package ingest

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// place is the folder of a source and which names below it count.
type place struct {
	root string // absolute path or URI, without a slash at the end
	// tail matches the leading segments of names below root, when the path had a glob
	// or named a file; nil lets all pass.
	tail []*glob

	once  sync.Once
	store storage.Store
	err   error
	open  func(root string) (storage.Store, error)
}

// newPlace splits a path into its fixed folder and the glob behind it.
func newPlace(path string, env Env) (*place, error) {
	if strings.TrimSpace(path) == "" {
		return nil, fault.New("MISSING_PATH", "a file source needs a path")
	}
	path = strings.TrimPrefix(path, "file://")
	scheme := strings.Contains(path, "://")
	if !scheme && !filepath.IsAbs(path) {
		dir, err := filepath.Abs(env.Dir)
		if err != nil {
			return nil, fault.Wrap(err, "INVALID_PATH", "%q", path)
		}
		// The folder is a name, whatever characters it has; the path may be a glob.
		path = filepath.Join(escapeGlob(dir), path)
	}
	p := &place{open: env.Open}
	head, rest := "", path
	if scheme {
		at := strings.Index(path, "://") + 3
		head, rest = path[:at], path[at:]
	}
	var fixed []string
	for _, segment := range strings.Split(filepath.ToSlash(rest), "/") {
		if plain, ok := literal(segment); ok && len(p.tail) == 0 {
			fixed = append(fixed, plain)
			continue
		}
		if segment == "" {
			continue
		}
		g, err := parseGlob(segment)
		if err != nil {
			return nil, err
		}
		p.tail = append(p.tail, g)
	}
	p.root = head + strings.TrimSuffix(strings.Join(fixed, "/"), "/")
	if p.root == "" {
		p.root = "/"
	}
	if p.open == nil {
		if scheme {
			return nil, fault.New("NOT_SUPPORTED", "path %s: only local folders can be read yet", path)
		}
		p.open = func(root string) (storage.Store, error) { return OpenLocal(root) }
	}
	return p, nil
}

// OpenLocal opens a folder that exists: a misspelt landing folder must not
// look like an empty one.
func OpenLocal(root string) (storage.Store, error) {
	if _, err := os.Stat(root); err != nil {
		return nil, pathError(err, root)
	}
	return storage.OpenDir(root)
}

func pathError(err error, path string) error {
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return fault.New("PATH_NOT_FOUND", "there is no %s", path).WithHint("Make the folder, or correct the path")
	case errors.Is(err, storage.ErrPermission):
		return fault.Wrap(err, "PERMISSION_DENIED", "%s cannot be read", path)
	}
	return fault.Wrap(err, "FAILED_READ_FILE", "%s", path)
}

// files gives the store of the folder. A path that names a file is its folder
// with a filter.
func (p *place) files() (storage.Store, error) {
	p.once.Do(func() {
		if info, err := os.Stat(p.root); err == nil && info.Mode().IsRegular() && len(p.tail) == 0 {
			var g *glob
			if g, p.err = parseGlob(escapeGlob(filepath.Base(p.root))); p.err != nil {
				return
			}
			p.tail = []*glob{g}
			p.root = filepath.Dir(p.root)
		}
		p.store, p.err = p.open(p.root)
	})
	return p.store, p.err
}

// literal gives the name that a segment without wildcards means.
func literal(segment string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(segment); i++ {
		switch c := segment[i]; {
		case c == '\\' && i+1 < len(segment):
			i++
		case strings.IndexByte(globChars, c) >= 0:
			return "", false
		}
		b.WriteByte(segment[i])
	}
	return b.String(), true
}

func escapeGlob(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(globChars+"]}^,", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (p *place) path(name string) string {
	if p.root == "/" {
		return "/" + name
	}
	return p.root + "/" + name
}

func (p *place) name(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, p.root), "/")
}

// matches says whether the leading segments of a name fit the glob of the path.
func (p *place) matches(name string) bool {
	for _, g := range p.tail {
		segment, rest, _ := strings.Cut(name, "/")
		if segment == "" || !g.match(segment) {
			return false
		}
		name = rest
	}
	return true
}

// hidden reports whether Spark's file index leaves a name out: a segment that
// starts with a dot, or with an underscore unless it is a partition (_x=1), or a copy under way.
func hidden(name string) bool {
	for segment := range strings.SplitSeq(name, "/") {
		switch {
		case strings.HasPrefix(segment, "."),
			strings.HasPrefix(segment, "_") && !strings.Contains(segment, "="),
			strings.HasSuffix(segment, "._COPYING_"):
			return true
		}
	}
	return false
}

// List discovers the files, ascending by Path. Size and time are looked up only
// when an option needs them.
func (s *Source) List(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		store, err := s.place.files()
		if err != nil {
			yield(File{}, err)
			return
		}
		c := s.config
		lstat := c.after != 0 || c.before != 0
		for info, err := range store.List(ctx, "", storage.ListOptions{NamesOnly: !lstat}) {
			if err != nil {
				yield(File{}, listError(ctx, err, s.place.root))
				return
			}
			if hidden(info.Name) || !s.place.matches(info.Name) {
				continue
			}
			if c.glob != nil && !c.glob.match(info.Name[strings.LastIndexByte(info.Name, '/')+1:]) {
				continue
			}
			f := File{Path: s.place.path(info.Name), Size: info.Size}
			if lstat {
				f.ModTimeMicros = info.ModTime.UnixMicro()
				if c.after != 0 && f.ModTimeMicros <= c.after || c.before != 0 && f.ModTimeMicros >= c.before {
					continue
				}
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

func listError(ctx context.Context, err error, root string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := "FAILED_LIST_FILES"
	if errors.Is(err, storage.ErrPermission) {
		code = "PERMISSION_DENIED"
	}
	return fault.Wrap(err, code, "cannot list %s", root)
}

// Complete looks up size and time of the files that lack them, in parallel. A
// file that is gone is left out under ignoreMissingFiles, else an error.
func (s *Source) Complete(ctx context.Context, files []File) ([]File, error) {
	store, err := s.place.files()
	if err != nil {
		return nil, err
	}
	out := slices.Clone(files)
	gone := make([]bool, len(files))
	g, ctx := errgroup.WithContext(ctx)
	parts := runtime.GOMAXPROCS(0)
	for part := range parts {
		g.Go(func() error {
			for i := part; i < len(out); i += parts {
				if out[i].Size >= 0 {
					continue
				}
				info, err := store.Stat(ctx, s.place.name(out[i].Path))
				if errors.Is(err, storage.ErrNotExist) && s.config.ignoreMissing {
					gone[i] = true
					continue
				}
				if err != nil {
					return readError(ctx, err, out[i].Path)
				}
				out[i].Size, out[i].ModTimeMicros = info.Size, info.ModTime.UnixMicro()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	i := -1
	return slices.DeleteFunc(out, func(File) bool { i++; return gone[i] }), nil
}

// readError names what is wrong with a file.
func readError(ctx context.Context, err error, path string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	where := fault.Where{File: path}
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return fault.Wrap(err, "FAILED_READ_FILE.FILE_NOT_EXIST", "the file is gone").
			WithHint("Set ignoreMissingFiles to pass over files that vanish").At(where)
	case errors.Is(err, storage.ErrPermission):
		return fault.Wrap(err, "FAILED_READ_FILE.PERMISSION_DENIED", "the file cannot be read").At(where)
	case fault.CodeOf(err) != "" && !strings.HasPrefix(fault.CodeOf(err), "STORAGE_"):
		return fault.Place(err, "FAILED_READ_FILE", where)
	}
	return fault.Wrap(err, "FAILED_READ_FILE.CORRUPT_FILE", "the file cannot be read to its end").
		WithHint("Replace the file, or set ignoreCorruptFiles to pass over it").At(where)
}

// partition is one k=v segment of a path.
type partition struct{ key, value string }

const nullPartition = "__HIVE_DEFAULT_PARTITION__"

// partitionsOf reads the k=v folders between the source's folder and the file.
func (s *Source) partitionsOf(path string) []partition {
	if s.config.recursive || s.config.partitionsSet && len(s.config.partitions) == 0 {
		return nil
	}
	var out []partition
	segments := strings.Split(s.place.name(path), "/")
	for _, segment := range segments[:len(segments)-1] {
		key, value, ok := strings.Cut(segment, "=")
		if !ok || key == "" {
			continue
		}
		key, value = unescapePath(key), unescapePath(value)
		if s.config.partitionsSet && !slices.ContainsFunc(s.config.partitions, func(p string) bool { return strings.EqualFold(p, key) }) {
			continue
		}
		out = append(out, partition{key, value})
	}
	return out
}

func unescapePath(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
