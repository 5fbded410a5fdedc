package cloud

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Failures are what FailureOf returns: why a cloud cannot be used, in one word.
var Failures = []string{FailureConnection, FailureTLS, FailureCredentials, FailureServer, FailureConfiguration, FailureOtherCloud}

// The values of Failures.
const (
	FailureConnection    = "no_connection" // no address, no route, no answer in time
	FailureTLS           = "tls"           // the certificate is not trusted, has expired, or names another host
	FailureCredentials   = "credentials"   // Keystone refuses them: HTTP 401 or 403
	FailureServer        = "server_error"  // HTTP 5xx or 429
	FailureOtherCloud    = "other_cloud"   // the login is for another project or region than before
	FailureConfiguration = "configuration" // what answers is no such service, or a file or the catalog lacks something
)

// errServer is the cause of an error about HTTP 5xx or 429.
var errServer = errors.New("the server has an error")

func serverError(format string, args ...any) *Error {
	err := errorf(ErrUnreachable, format, args...)
	err.cause = errServer
	return err
}

// FailureOf returns the kind of an error of this package, one of Failures. It is empty for nil.
func FailureOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrUnauthorised):
		return FailureCredentials
	case errors.Is(err, ErrOtherCloud):
		return FailureOtherCloud
	case isTLS(err):
		return FailureTLS
	case errors.Is(err, errServer):
		return FailureServer
	case errors.Is(err, ErrUnreachable):
		return FailureConnection
	}
	return FailureConfiguration
}

func isTLS(err error) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(tls.AlertError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// PingService checks that a service of the catalog answers, as Ping does for Keystone. The request has no token, so that the service does not
// ask Keystone about one and access rules do not count. It usually gets HTTP 401, which is an answer. Errors: ErrUnreachable, ErrNoService.
func (c *Cloud) PingService(ctx context.Context, serviceType string) error {
	endpoint, err := c.endpoints.of(ctx, serviceType)
	if err != nil {
		return err
	}
	status, err := ping(ctx, c.transport, strings.TrimSuffix(endpoint, c.projectID+"/"))
	switch {
	case err != nil && ctx.Err() != nil:
		return errorf(ErrUnreachable, "cloud %s: no reply from %s at %s in time: %w", c.settings.Name, serviceType, PlainURL(endpoint), ctx.Err())
	case err != nil:
		return errorf(ErrUnreachable, "cloud %s: cannot reach %s at %s: %w", c.settings.Name, serviceType, PlainURL(endpoint), c.settings.failure(err))
	case status == http.StatusNotFound: // a service has its own endpoint, so a proxy before it has answered
		return serverError("cloud %s: %s at %s returns HTTP 404, so no route leads to the service", c.settings.Name, serviceType, PlainURL(endpoint))
	case status >= http.StatusInternalServerError:
		return serverError("cloud %s: %s at %s returns HTTP %d", c.settings.Name, serviceType, PlainURL(endpoint), status)
	}
	return nil
}

// ping sends a GET without a token and reads the answer, so that the connection can be used again.
func ping(ctx context.Context, via http.RoundTripper, address string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := via.RoundTrip(request)
	if err != nil {
		return 0, &url.Error{Err: err}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// keystoneTime is how Keystone writes a time: in UTC, with microseconds, and with or without a Z.
const keystoneTime = "2006-01-02T15:04:05"

// Expiry asks Keystone when the credential ends: the application credential, or the password of the user. The zero time means that it does not
// expire. It uses the token, so that a credential that was revoked is refused now, and not at the next claim. Errors: ErrUnauthorised,
// ErrUnreachable; others if Keystone does not show it, which says nothing about the credential.
func (c *Cloud) Expiry(ctx context.Context) (time.Time, error) {
	at, err := c.readExpiry(ctx)
	if err == nil && !at.IsZero() {
		c.expires.Store(&at)
	}
	return at, err
}

func (c *Cloud) readExpiry(ctx context.Context) (time.Time, error) {
	var login struct {
		User struct {
			ID      string `json:"id"`
			Expires string `json:"password_expires_at"`
		} `json:"user"`
		Credential *struct {
			ID string `json:"id"`
		} `json:"application_credential"`
	}
	result, ok := c.provider.GetAuthResult().(interface {
		ExtractIntoStructPtr(into any, label string) error
	})
	if !ok {
		return time.Time{}, errorf(ErrMisconfigured, "cloud %s: the reply of Keystone holds no token", c.settings.Name)
	}
	if err := result.ExtractIntoStructPtr(&login, "token"); err != nil {
		return time.Time{}, errorf(ErrMisconfigured, "cloud %s: the reply of Keystone cannot be read: %w", c.settings.Name, err)
	}
	if login.Credential == nil {
		var token struct{}
		err := c.identity(ctx, "auth/tokens", &token)
		return expiryOf(login.User.Expires), err
	}
	var shown struct {
		Credential struct {
			Expires string `json:"expires_at"`
		} `json:"application_credential"`
	}
	err := c.identity(ctx, "users/"+url.PathEscape(login.User.ID)+"/application_credentials/"+url.PathEscape(login.Credential.ID), &shown)
	return expiryOf(shown.Credential.Expires), err
}

// expiryOf is the zero time for a text that is none.
func expiryOf(text string) time.Time {
	at, _ := time.Parse(keystoneTime, strings.TrimSuffix(text, "Z"))
	return at
}

// identity sends a GET to Keystone with the token, about the token.
func (c *Cloud) identity(ctx context.Context, path string, into any) error {
	endpoint, err := c.endpoints.of(ctx, "identity")
	if err != nil {
		return err
	}
	resp, err := c.provider.Request(ctx, http.MethodGet, endpoint+path, &gophercloud.RequestOpts{
		OkCodes: []int{http.StatusOK}, KeepResponseBody: true, MoreHeaders: map[string]string{"X-Subject-Token": c.provider.Token()},
	})
	if err != nil {
		return c.settings.loginError(ctx, err)
	}
	defer resp.Body.Close()
	if err := Decode(resp, into); endedEarly(err) {
		return c.settings.loginError(ctx, err)
	} else if err != nil {
		return errorf(ErrMisconfigured, "cloud %s: the reply of Keystone cannot be read: %w", c.settings.Name, err)
	}
	return nil
}
