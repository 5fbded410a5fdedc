package openstack

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// userMessage is a message about a resource (Cinder API reference, "Messages").
type userMessage struct {
	Level   string `json:"message_level"`
	Text    string `json:"user_message"`
	Created string `json:"created_at"`
}

// messagesPause is how long the driver reads no messages after Cinder did not answer. A message only explains a failure: neither its own call nor
// the others may wait for it. Twenty creates whose messages were answered with 429 took 32 s without the pause.
const messagesPause = 10 * time.Second

// noMessages is an answer that Cinder did not give to a request for messages.
type noMessages struct {
	at    time.Time
	cause error
}

// mostTexts is how many messages a failure joins. The result is cut anyway.
const mostTexts = 16

// Failure implements volume.Cloud.
func (c *Cloud) Failure(ctx context.Context, id volume.ID) (string, error) {
	return c.failure(ctx, "volume "+string(id), string(id))
}

// failure joins the errors among Cinder's user messages about an object, each once, oldest first. After a create that failed, the backend
// and then the scheduler write one, often in the same second; only the first names the cause. It is empty for a cloud without messages. If
// a policy hides them, the text says so: an administrator can change that.
func (c *Cloud) failure(ctx context.Context, object, id string) (string, error) {
	if !contract.IsUUID(id) {
		return "", nil
	}
	var answer struct {
		Messages cloud.Items[userMessage] `json:"messages"`
	}
	if last := c.noMessages.Load(); last != nil && time.Since(last.at) < messagesPause && ctx.Err() == nil {
		return "", volume.Errorf(volume.Unavailable, "%s: messages not read, because an earlier request for messages failed: %w", object, last.cause).Cause(cause.CloudUnreachable).Op("read messages")
	}
	err := c.do(volume.WithOneAttempt(ctx), request{
		call: listMessages, verb: "read messages", object: object, query: limited(url.Values{"resource_uuid": {id}}),
		ok: http.StatusOK, into: &answer,
	})
	if ctx.Err() == nil && volume.Is(err, volume.Unavailable) {
		c.noMessages.Store(&noMessages{time.Now(), err})
	}
	switch volume.KindOf(err) {
	case volume.NotFound, volume.Unimplemented:
		return "", nil
	case volume.PermissionDenied:
		return volume.ReasonHidden + ": " + err.Error(), nil
	}
	// All times have one format, so the text order is the time order.
	slices.SortStableFunc(answer.Messages, func(a, b userMessage) int { return cmp.Compare(a.Created, b.Created) })
	var texts []string
	for _, m := range answer.Messages {
		if m.Level == "ERROR" && len(texts) < mostTexts && !slices.Contains(texts, m.Text) {
			texts = append(texts, m.Text)
		}
	}
	return cloud.Public(strings.Join(texts, "; ")), err
}
