package cloud

import (
	"net/url"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// location is a parsed URL of a folder in an object store.
type location struct {
	scheme string // s3, azblob or gs
	bucket string
	prefix string // "" or a folder with a slash at the end
	params url.Values
}

// IsURL tells whether a path names a folder of an object store.
func IsURL(path string) bool {
	scheme, _, ok := strings.Cut(path, "://")
	return ok && services[canonicalScheme(scheme)] != nil
}

// canonicalScheme maps the spellings of other engines to ours.
func canonicalScheme(scheme string) string {
	switch scheme = strings.ToLower(scheme); scheme {
	case "s3a", "s3n":
		return "s3"
	case "gcs":
		return "gs"
	case "az", "abfs", "abfss", "wasb", "wasbs":
		return "azblob"
	}
	return scheme
}

func parseLocation(text string) (location, error) {
	bad := func(err error, what string) *fault.Error {
		return fault.Wrap(err, "INVALID_STORE_URL", "%q %s", redact(text), what).
			WithHint("Write s3://bucket/prefix, azblob://container/prefix or gs://bucket/prefix; put %%3F and %%23 for ? and # in the prefix")
	}
	u, err := url.Parse(text)
	if err != nil {
		return location{}, bad(nil, "is no URL")
	}
	l := location{scheme: canonicalScheme(u.Scheme), bucket: u.Host, params: u.Query()}
	if services[l.scheme] == nil {
		return location{}, bad(nil, "has no scheme of an object store")
	}
	if u.User != nil {
		// abfss://container@account.dfs.core.windows.net/folder
		account, domain, _ := strings.Cut(u.Host, ".")
		if l.scheme != "azblob" || account == "" || domain == "" {
			return location{}, bad(nil, "must not hold a user name or password").WithHint("Credentials come from the environment")
		}
		l.bucket = u.User.Username()
		l.params.Set("storage_account", account)
		l.params.Set("domain", strings.Replace(domain, "dfs.", "blob.", 1))
	}
	if l.bucket == "" || u.Opaque != "" {
		return location{}, bad(nil, "names no bucket")
	}
	if u.Fragment != "" {
		return location{}, bad(nil, "has a fragment")
	}
	prefix, err := storage.CheckPrefix(strings.Trim(u.Path, "/"))
	if err == nil && prefix != "" {
		err = checkKey(prefix)
	}
	if err != nil {
		return location{}, bad(err, "has a prefix that cannot be used")
	}
	if prefix != "" {
		l.prefix = prefix + "/"
	}
	return l, nil
}

// redact leaves out what could hold a secret.
func redact(text string) string {
	text, _, _ = strings.Cut(text, "?")
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		if user, at, ok := strings.Cut(host, "@"); ok && strings.Contains(user, ":") {
			host = at
		}
		return scheme + "://" + host + "/" + path
	}
	return text
}

// String gives the URL without its parameters and without a slash at the end.
func (l location) String() string {
	return strings.TrimSuffix(l.scheme+"://"+l.bucket+"/"+l.prefix, "/")
}
