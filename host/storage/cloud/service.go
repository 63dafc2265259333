package cloud

import (
	"context"
	"net/http"

	"gocloud.dev/blob"
)

// hook reaches the request of a service's own client before it is made: as
// fills a pointer to it when the type fits.
type hook = func(as func(any) bool) error

// service is what each object store does in its own way.
type service interface {
	// open makes a client of a bucket. It consumes the parameters that it knows.
	open(ctx context.Context, l location, client *http.Client) (*blob.Bucket, error)
	// status tells what the service answered, 0 when nothing came.
	status(err error) (status int, code string)
	// name gives the key of a listed object as it is, before gocloud.dev reads escapes in it.
	name(o *blob.ListObject) string
	// pin gives the hook for reads of just the version that r reads.
	pin(r *blob.Reader) hook
	// after gives the hook for a listing that begins at or behind a key.
	after(key string) hook
	// replaces gives the hook for a write that replaces just the version of a.
	replaces(a *blob.Attributes) hook
	// credentialsHint says where the credentials are looked for.
	credentialsHint() string
}

var services = map[string]service{"s3": s3Service{}, "azblob": azureService{}, "gs": gcsService{}}
