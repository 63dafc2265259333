package cloud

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"gocloud.dev/blob"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const pageSize = 1000

// List implements storage.Store. What is no name of an object here (the markers
// of folders that some tools write, names with control characters) is left out.
func (s *Store) List(ctx context.Context, prefix string, opt storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		folder, err := storage.CheckPrefix(prefix)
		if err == nil {
			err = checkKey(folder)
		}
		if err != nil {
			yield(storage.Info{}, storage.Coded(err, "list", prefix))
			return
		}
		if err := s.list(ctx, folder, opt, yield); err != nil {
			yield(storage.Info{}, s.fail(err, "list", folder))
		}
	}
}

func (s *Store) list(ctx context.Context, folder string, opt storage.ListOptions, yield func(storage.Info, error) bool) error {
	if folder != "" {
		folder += "/"
	}
	in := &blob.ListOptions{Prefix: s.where.prefix + folder}
	if from := startKey(s.where.prefix + opt.After); opt.After != "" && from > in.Prefix {
		in.BeforeList = s.service.after(from)
	}
	last := ""
	for token := blob.FirstPageToken; len(token) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		objects, next, err := s.page(ctx, token, in)
		if err != nil {
			return err
		}
		for _, o := range objects {
			name, below := strings.CutPrefix(s.service.name(o), s.where.prefix)
			if !below || name <= opt.After || storage.CheckName(name) != nil || checkKey(name) != nil {
				continue
			}
			if name <= last {
				return fault.New("STORE_LISTS_OUT_OF_ORDER", "%s lists %q behind %q", s.where, name, last).
					WithHint("Use a bucket that lists in the order of names; S3 directory buckets do not")
			}
			last = name
			info := storage.Info{Name: name, Size: -1}
			if !opt.NamesOnly {
				info.Size, info.ModTime = o.Size, modTime(o.ModTime)
			}
			if !yield(info, nil) {
				return nil
			}
		}
		token = next
	}
	return nil
}

func (s *Store) page(ctx context.Context, token []byte, in *blob.ListOptions) (objects []*blob.ListObject, next []byte, err error) {
	err = s.retry(ctx, func() (err error) {
		defer guard(&err)
		objects, next, err = s.bucket.ListPage(ctx, token, pageSize, in)
		return err
	})
	return objects, next, err
}

// startKey cuts what a service could not take as part of a name; a listing that
// begins earlier is only longer.
func startKey(key string) string {
	end := strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r == 0x7F || r == utf8.RuneError })
	if end >= 0 {
		key = key[:end]
	}
	return key
}
