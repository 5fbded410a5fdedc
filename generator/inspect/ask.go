package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// asker sends GETs to one cloud.
type asker struct {
	cloud *cloud.Cloud
	slots chan struct{} // one for each request in progress
	// versions are read once: two collectors need them.
	lock     sync.Mutex
	versions map[string]*sharedVersions
	// unanswered are the requests that the end of the context cut off.
	unanswered []string
}

func newAsker(c *cloud.Cloud) *asker {
	return &asker{cloud: c, slots: make(chan struct{}, parallel), versions: map[string]*sharedVersions{}}
}

// requestError says which request failed. Its text holds no secret and nothing that differs between two runs.
type requestError struct {
	service, url string
	cause        error
}

func (e *requestError) Error() string {
	return fmt.Sprintf("%s: GET %s: %s", e.service, e.url, e.cause)
}

func (e *requestError) Unwrap() error { return e.cause }

// get reads one answer into body; path is below the service's endpoint. An answer without the key is none: a proxy gives it, or a service
// that is not yet up. Without a key, an empty object is an answer.
func (a *asker) get(ctx context.Context, service, microversion, path, key string, body any) error {
	client, err := a.cloud.ClientContext(ctx, service, microversion)
	if err != nil {
		return err
	}
	return a.fetch(ctx, client, client.Endpoint+path, key, body)
}

// fetch reads one URL when one of the slots is free.
func (a *asker) fetch(ctx context.Context, client *gophercloud.ServiceClient, address, key string, body any) error {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var text json.RawMessage
	err := a.cloud.Read(ctx, client, address, &text, http.StatusOK, http.StatusMultipleChoices)
	if err == nil {
		err = decode(text, key, body)
	}
	if err != nil {
		if ctx.Err() != nil {
			a.lock.Lock()
			defer a.lock.Unlock()
			a.unanswered = append(a.unanswered, "GET "+cloud.PlainURL(address))
		}
		return &requestError{service: client.Type, url: cloud.PlainURL(address), cause: err}
	}
	return nil
}

// decode reads the text of an answer.
func decode(text []byte, key string, body any) error {
	if err := cloud.Unmarshal(text, body); err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if err := cloud.Unmarshal(text, &keys); err != nil {
		return err
	}
	if value, there := keys[key]; key != "" && (!there || string(value) == "null") {
		return fmt.Errorf("the answer has no key %q", key)
	}
	return nil
}

// mostUnanswered is how many requests a message names.
const mostUnanswered = 3

// waitedFor names the requests that got no answer before the context ended.
func (a *asker) waitedFor() string {
	a.lock.Lock()
	defer a.lock.Unlock()
	slices.Sort(a.unanswered)
	names := slices.Compact(a.unanswered)
	switch n := len(names); {
	case n == 0:
		return ""
	case n > mostUnanswered:
		names = append(slices.Clone(names[:mostUnanswered]), fmt.Sprintf("%d more", n-mostUnanswered))
	}
	return "; no answer to " + strings.Join(names, ", ")
}

// factOf turns an answer into a fact. The kind of error decides the state.
func factOf[T any](value T, err error) v1alpha1.Fact[T] {
	if err == nil {
		return v1alpha1.Fact[T]{State: v1alpha1.Known, Value: value}
	}
	state, reason := classify(err)
	return v1alpha1.Fact[T]{State: state, Reason: reason}
}

// RefusedToken is the reason of a fact for which a service answers 401 to a token that Keystone has just issued. The middleware of the service
// gives one answer to several causes. It compares the token with its own clock, and the request with the access rules in the token.
const RefusedToken = "HTTP 401 with a fresh token: an access rule of the application credential is missing, or a clock of the cloud is wrong"

// classify says what a failed question means. 401 counts as denied: the token was renewed just before, so the login is not the cause.
// Reasons hold nothing that differs between two runs.
func classify(err error) (v1alpha1.State, string) {
	if errors.Is(err, cloud.ErrNoService) {
		return v1alpha1.Unsupported, err.Error()
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &answer) {
		return v1alpha1.Failed, oneLine(err.Error())
	}
	switch answer.Actual {
	case http.StatusUnauthorized:
		return v1alpha1.Denied, RefusedToken
	case http.StatusForbidden:
		if policy := deniedPolicy.FindStringSubmatch(err.Error()); policy != nil {
			return v1alpha1.Denied, "policy " + policy[1]
		}
		return v1alpha1.Denied, "HTTP 403"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		return v1alpha1.Unsupported, fmt.Sprintf("HTTP %d", answer.Actual)
	}
	return v1alpha1.Failed, oneLine(err.Error())
}

// deniedPolicy finds the rule that oslo.policy names in its refusals.
var deniedPolicy = regexp.MustCompile(`Policy doesn't allow ([a-zA-Z0-9_:.-]+) to be performed`)

func oneLine(s string) string {
	s = strings.Join(strings.Fields(cloud.Clean(s)), " ")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
