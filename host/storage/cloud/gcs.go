package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/weir-data/weir/host/fault"
)

// gcsService is Google Cloud Storage.
type gcsService struct{}

func (gcsService) open(ctx context.Context, l location, client *http.Client) (*blob.Bucket, error) {
	endpoint, anonymous := l.params.Get("endpoint"), l.params.Get("anonymous") == "true"
	for name := range l.params {
		if name != "endpoint" && name != "anonymous" {
			return nil, fault.New("INVALID_STORE_URL", "%s: unknown parameter %q", l, name)
		}
	}
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" && endpoint == "" {
		endpoint, anonymous = "http://"+host, true
	}
	var opts gcsblob.Options
	authorized := gcp.NewAnonymousHTTPClient(client.Transport)
	if endpoint != "" {
		opts.ClientOptions = append(opts.ClientOptions, option.WithEndpoint(endpoint+"/storage/v1/"))
	}
	if !anonymous {
		cred, err := gcp.DefaultCredentials(ctx)
		if err == nil {
			authorized, err = gcp.NewHTTPClient(client.Transport, gcp.CredentialsTokenSource(cred))
		}
		if err != nil {
			return nil, fault.Wrap(err, "STORE_CREDENTIALS", "%s", l).WithHint("%s", gcsService{}.credentialsHint())
		}
	}
	b, err := gcsblob.OpenBucket(ctx, authorized, l.bucket, &opts)
	if err != nil {
		return nil, fault.Wrap(err, "INVALID_STORE_URL", "%s", l)
	}
	var c *storage.Client
	if b.As(&c) {
		// Without a bound it would go on forever.
		c.SetRetry(storage.WithErrorFunc(gcsPasses), storage.WithMaxAttempts(attempts), storage.WithBackoff(gax.Backoff{Initial: 2 * firstPause, Max: lastPause, Multiplier: 2}))
	}
	return b, nil
}

// gcsPasses adds to what the client tries again a connection that ended without
// an answer, and leaves out what the service does not know how to do.
func gcsPasses(err error) bool {
	status, _ := gcsService{}.status(err)
	return status != http.StatusNotImplemented && (storage.ShouldRetry(err) || errors.Is(err, io.EOF))
}

func (gcsService) name(o *blob.ListObject) string {
	var raw storage.ObjectAttrs
	if o.As(&raw) && raw.Name != "" {
		return raw.Name
	}
	return o.Key
}

func (gcsService) status(err error) (int, string) {
	var response *googleapi.Error
	switch {
	case errors.As(err, &response):
		return response.Code, ""
	case errors.Is(err, storage.ErrBucketNotExist):
		return http.StatusNotFound, "NoSuchBucket"
	case errors.Is(err, storage.ErrObjectNotExist):
		return http.StatusNotFound, ""
	}
	return 0, ""
}

func (gcsService) pin(r *blob.Reader) hook {
	var in *storage.Reader
	if !r.As(&in) || in.Attrs.Generation == 0 {
		return nil
	}
	generation := in.Attrs.Generation
	return func(as func(any) bool) error {
		var o **storage.ObjectHandle
		if as(&o) {
			*o = (*o).If(storage.Conditions{GenerationMatch: generation})
		}
		return nil
	}
}

func (gcsService) after(key string) hook {
	return func(as func(any) bool) error {
		var q *storage.Query
		if as(&q) {
			q.StartOffset = key
		}
		return nil
	}
}

func (gcsService) replaces(a *blob.Attributes) hook {
	return func(as func(any) bool) error {
		var old storage.ObjectAttrs
		var o **storage.ObjectHandle
		if !a.As(&old) || !as(&o) {
			return errors.ErrUnsupported
		}
		*o = (*o).If(storage.Conditions{GenerationMatch: old.Generation})
		return nil
	}
}

func (gcsService) credentialsHint() string {
	return "Set GOOGLE_APPLICATION_CREDENTIALS, log in with gcloud, or run where a service account is attached; ?anonymous=true reads public buckets"
}
