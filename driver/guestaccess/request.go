package guestaccess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/kubeconfig"
)

type token struct {
	text    string
	expires time.Time
}

// tokenRequest is the object that is sent and returned (authentication.k8s.io/v1, TokenRequest).
type tokenRequest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		ExpirationSeconds int64 `json:"expirationSeconds"`
	} `json:"spec"`
	Status struct {
		Token               string    `json:"token"`
		ExpirationTimestamp time.Time `json:"expirationTimestamp"`
	} `json:"status,omitzero"`
}

const (
	requestTimeout = 20 * time.Second
	maxAnswer      = 1 << 20 // bytes; a token has some 1,000
)

// requestToken asks the guest's API for a token. Each request has a connection of its own, because the next one is an hour away and may need
// another certificate.
func requestToken(ctx context.Context, k kubeconfig.Config, o Options) (token, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	want := tokenRequest{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	want.Spec.ExpirationSeconds = int64(o.Lifetime / time.Second)
	body, err := json.Marshal(want)
	if err != nil {
		return token{}, err
	}
	path := "/api/v1/namespaces/" + url.PathEscape(o.Namespace) + "/serviceaccounts/" + url.PathEscape(o.ServiceAccount) + "/token"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.Server+path, bytes.NewReader(body))
	if err != nil {
		return token{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if k.Certificate == nil {
		req.Header.Set("Authorization", "Bearer "+k.Token)
	}
	resp, err := client(k).Do(req)
	if err != nil {
		return token{}, fmt.Errorf("the API of the guest cluster does not answer: %w", err)
	}
	defer resp.Body.Close()
	return readToken(resp, o)
}

func client(k kubeconfig.Config) *http.Client {
	return &http.Client{
		// Without a proxy: the environment's is for OpenStack.
		Transport: &http.Transport{TLSClientConfig: k.TLS(), DisableKeepAlives: true, ForceAttemptHTTP2: true},
		// The API does not redirect, and a redirect must not take the administrator's credentials elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func readToken(resp *http.Response, o Options) (token, error) {
	account := o.Namespace + "/" + o.ServiceAccount
	switch resp.StatusCode {
	case http.StatusCreated:
	case http.StatusNotFound:
		return token{}, fmt.Errorf("the guest cluster has no service account %s; apply the guest plane of the bundle", account)
	case http.StatusUnauthorized, http.StatusForbidden:
		return token{}, fmt.Errorf("the guest cluster refuses a token of service account %s (HTTP %d); the kubeconfig must be an administrator's", account, resp.StatusCode)
	default:
		return token{}, fmt.Errorf("the guest cluster answers the request for a token of service account %s with HTTP %d", account, resp.StatusCode)
	}
	var got tokenRequest
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&got); err != nil || got.Status.Token == "" || got.Status.ExpirationTimestamp.IsZero() {
		return token{}, errors.New("the guest cluster answers without a token")
	}
	return token{got.Status.Token, got.Status.ExpirationTimestamp}, nil
}
