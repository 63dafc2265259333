package cloud

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azb "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/weir-data/weir/host/fault"
)

// azureService is Azure Blob Storage.
type azureService struct{}

func (azureService) open(ctx context.Context, l location, client *http.Client) (*blob.Bucket, error) {
	opener := azureblob.URLOpener{
		ServiceURLOptions: *azureblob.NewDefaultServiceURLOptions(),
		MakeClient: func(service azureblob.ServiceURL, name azureblob.ContainerName) (*container.Client, error) {
			return azureClient(string(service), string(name), client)
		},
	}
	if opener.ServiceURLOptions.AccountName == "" {
		opener.ServiceURLOptions.AccountName = os.Getenv("AZURE_STORAGE_ACCOUNT_NAME") // as other engines call it
	}
	if opener.ServiceURLOptions.AccountName == "" && l.params.Get("storage_account") == "" {
		return nil, fault.New("STORE_CREDENTIALS", "%s: no storage account is set", l).WithHint("Set AZURE_STORAGE_ACCOUNT, or add ?storage_account=… to the URL")
	}
	b, err := opener.OpenBucketURL(ctx, &url.URL{Scheme: azureblob.Scheme, Host: l.bucket, RawQuery: l.params.Encode()})
	if err != nil {
		return nil, fault.Wrap(err, "INVALID_STORE_URL", "%s", l)
	}
	return b, nil
}

// azureClient signs with what the environment holds, in the order of the
// drivers of gocloud.dev: a key, a token, a connection string, an identity.
func azureClient(service, name string, client *http.Client) (*container.Client, error) {
	where, err := url.JoinPath(service, name)
	if err != nil {
		return nil, err
	}
	opts := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport:       client,
		Retry:           policy.RetryOptions{MaxRetries: attempts - 1, RetryDelay: 2 * firstPause, MaxRetryDelay: lastPause},
		PerCallPolicies: []policy.Policy{plainNames{}},
	}}
	env := func(names ...string) string {
		for _, n := range names {
			if v := os.Getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	account := env("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME")
	if key := env("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"); account != "" && key != "" {
		cred, err := azblob.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(where, cred, opts)
	}
	if env("AZURE_STORAGE_SAS_TOKEN") != "" {
		return container.NewClientWithNoCredential(where, opts) // the token is part of the URL
	}
	if text := env("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"); text != "" {
		return container.NewClientFromConnectionString(text, name, opts)
	}
	cred, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(where, cred, opts)
}

// plainNames undoes the escapes that the driver of gocloud.dev puts into names:
// an object called "p=a%3Ab" must lie under that name, or no other engine finds it.
type plainNames struct{}

var plainName = strings.NewReplacer("__0x22__", `"`, "__0x23__", "#", "__0x25__", "%", "__0x3f__", "?")

func (plainNames) Do(req *policy.Request) (*http.Response, error) {
	u := req.Raw().URL
	if strings.Contains(u.Path, "__0x") {
		raw := strings.NewReplacer("__0x22__", "%22", "__0x23__", "%23", "__0x25__", "%25", "__0x3f__", "%3F").Replace(u.EscapedPath())
		path, err := url.PathUnescape(raw)
		if err != nil {
			return nil, err
		}
		u.Path, u.RawPath = path, raw
	}
	if strings.Contains(u.RawQuery, "__0x") {
		q := u.Query()
		if prefix := q.Get("prefix"); prefix != "" {
			q.Set("prefix", plainName.Replace(prefix))
			u.RawQuery = q.Encode()
		}
	}
	return req.Next()
}

func (azureService) name(o *blob.ListObject) string {
	var raw container.BlobItem
	if o.As(&raw) && raw.Name != nil {
		return *raw.Name
	}
	return o.Key
}

func (azureService) status(err error) (int, string) {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode, response.ErrorCode
	}
	return 0, ""
}

func (azureService) pin(r *blob.Reader) hook {
	var out azb.DownloadStreamResponse
	if !r.As(&out) || out.ETag == nil {
		return nil
	}
	return func(as func(any) bool) error {
		var in *azb.DownloadStreamOptions
		if as(&in) {
			in.AccessConditions = &azb.AccessConditions{ModifiedAccessConditions: &azb.ModifiedAccessConditions{IfMatch: out.ETag}}
		}
		return nil
	}
}

func (azureService) after(key string) hook {
	return func(as func(any) bool) error {
		var in *container.ListBlobsHierarchyOptions
		if as(&in) && in.Marker == nil {
			in.StartFrom = &key
		}
		return nil
	}
}

func (azureService) replaces(a *blob.Attributes) hook {
	return func(as func(any) bool) error {
		var in *azblob.UploadStreamOptions
		if !as(&in) {
			return errors.ErrUnsupported
		}
		etag := azcore.ETag(a.ETag)
		in.AccessConditions = &azb.AccessConditions{ModifiedAccessConditions: &azb.ModifiedAccessConditions{IfMatch: &etag}}
		return nil
	}
}

func (azureService) credentialsHint() string {
	return "Set AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_CONNECTION_STRING, or what the default Azure credential reads"
}
