package cloud

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/weir-data/weir/host/fault"
)

// s3Service is S3 and what speaks its protocol.
type s3Service struct{}

func (s3Service) open(ctx context.Context, l location, client *http.Client) (*blob.Bucket, error) {
	q := l.params
	take := func(name string) string {
		v := q.Get(name)
		q.Del(name)
		return v
	}
	endpoint := take("endpoint")
	style := take("use_path_style")
	cfg, err := gcaws.V2ConfigFromURLParams(ctx, q)
	if err != nil {
		return nil, fault.Wrap(err, "INVALID_STORE_URL", "%s", l)
	}
	cfg.HTTPClient = client
	if endpoint != "" {
		cfg.BaseEndpoint = &endpoint
	}
	other := cfg.BaseEndpoint != nil || os.Getenv("AWS_ENDPOINT_URL_S3") != ""
	if cfg.Region == "" {
		if !other {
			return nil, fault.New("STORE_CREDENTIALS", "%s: no region is set", l).WithHint("Set AWS_REGION, or add ?region=… to the URL")
		}
		cfg.Region = "us-east-1" // services that imitate S3 take any
	}
	// Services that imitate S3 seldom have a host name for each bucket.
	pathStyle := other
	if style != "" {
		if pathStyle, err = strconv.ParseBool(style); err != nil {
			return nil, fault.Wrap(err, "INVALID_STORE_URL", "%s: use_path_style is true or false", l)
		}
	}
	retryer := retry.NewStandard(func(o *retry.StandardOptions) {
		o.RateLimiter = ratelimit.None // a bound on retries of all calls together would fail single ones
		o.MaxAttempts = attempts
		if cfg.RetryMaxAttempts > 0 {
			o.MaxAttempts = cfg.RetryMaxAttempts
		}
		o.Backoff = retry.BackoffDelayerFunc(func(n int, _ error) (time.Duration, error) { return pause(n), nil })
		o.Retryables = append(o.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}})
	})
	c := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = pathStyle
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, abortsOutlive)
		o.Retryer = retryer
	})
	return s3blob.OpenBucket(ctx, c, l.bucket, &s3blob.Options{RequestChecksumCalculation: cfg.RequestChecksumCalculation})
}

// abortsOutlive lets the removal of an upload's parts go on when the context
// that ended the upload has ended.
func abortsOutlive(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("AbortsOutlive",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if _, ok := in.Parameters.(*s3.AbortMultipartUploadInput); ok {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
				defer cancel()
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}

const abortTimeout = 10 * time.Second

func (s3Service) name(o *blob.ListObject) string {
	var raw types.Object
	if o.As(&raw) && raw.Key != nil {
		return *raw.Key
	}
	return o.Key
}

func (s3Service) status(err error) (int, string) {
	status, code := 0, ""
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	return status, code
}

func (s3Service) pin(r *blob.Reader) hook {
	var out s3.GetObjectOutput
	if !r.As(&out) || out.ETag == nil {
		return nil
	}
	return func(as func(any) bool) error {
		var in *s3.GetObjectInput
		if as(&in) {
			in.IfMatch = out.ETag
		}
		return nil
	}
}

func (s3Service) after(key string) hook {
	return func(as func(any) bool) error {
		var in *s3.ListObjectsV2Input
		if as(&in) && in.ContinuationToken == nil {
			in.StartAfter = aws.String(key)
		}
		return nil
	}
}

func (s3Service) replaces(a *blob.Attributes) hook {
	return func(as func(any) bool) error {
		var in *transfermanager.UploadObjectInput
		if !as(&in) {
			return errors.ErrUnsupported
		}
		in.IfMatch = aws.String(a.ETag)
		return nil
	}
}

func (s3Service) credentialsHint() string {
	return "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or run where a role is attached; ?anonymous=true reads public buckets"
}
