package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The limits of one reply, counted after decompression. A page of 1,000 volumes with all that an administrator sees has 4.9 MB
// and 75,000 separators (TestAFullPageOfVolumesFits). There each volume has three attachments, a description of 255 characters
// and ten metadata entries of 100. A page of volumes that all have the most metadata possible does not fit.
const (
	maxBody       = 8 << 20   // bytes of a reply
	maxLogin      = 512 << 10 // bytes of a login reply: catalogs of large clouds have some 100 KiB, and gophercloud decodes them several times
	maxErrorBody  = 64 << 10  // bytes of a reply that is an error to its reader, who does not see the rest
	maxCatalog    = 16 << 10  // maxSeparators of a login reply, which gophercloud keeps as values of any type: 2,000 endpoints
	maxSeparators = 256 << 10 // commas and opening brackets outside strings, which bound the memory of a short JSON text
	maxObject     = 256 << 10 // bytes of one object, which an RPC keeps while it waits: a volume with 128 metadata entries and 64 attachments has 90 KiB
	maxMembers    = 8 << 10   // maxSeparators of one object
	smallBody     = 64 << 10  // bytes; a shorter reply needs no slot
	largeBodies   = 2         // slots: larger replies that are read and decoded at a time
)

// SmallestPage is how many objects of a list fit into one reply however large each is.
const SmallestPage = maxBody/maxObject - 1

// ErrTooLarge means that a reply has more than the limits of one. A list may be read in smaller pages.
var ErrTooLarge = errors.New("the reply is too large")

// checkObject returns an error for a JSON text that is too large for one object.
func checkObject(text []byte) error {
	var members separators
	if len(text) <= maxObject {
		members.count(text)
	}
	if len(text) > maxObject || members.seen > maxMembers {
		return fmt.Errorf("the reply has an object that is too large: more than %d bytes or %d values", maxObject, maxMembers)
	}
	return nil
}

// UnmarshalObject is json.Unmarshal for one object of a reply, with the limits of one.
func UnmarshalObject(text []byte, into any) error {
	if err := checkObject(text); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Bound wraps next, which is the transport to one cloud, so that the memory for replies has a limit. Reading more than maxBody bytes of a
// reply returns an error. With a status that no request asks for, a reader sees only the beginning. At most two replies of more than 64 KiB are read and
// decoded at a time. Other clouds have their own two, so that one that answers slowly does not delay them.
func Bound(next http.RoundTripper) http.RoundTripper { return NewSlots().Bound(next) }

// Slots are those of the large replies of one cloud. All logins of a cloud share them: a cloud decides when its services move, and then requests of the
// login before go on.
type Slots chan struct{}

// NewSlots are the slots of one cloud.
func NewSlots() Slots { return make(Slots, largeBodies) }

// Bound is the function Bound, with these slots.
func (s Slots) Bound(next http.RoundTripper) http.RoundTripper { return bounded{s, next} }

// asked are the statuses of replies that are decoded. Gophercloud reads any other reply to its end, and makes an error of it.
var asked = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent, http.StatusMultipleChoices}

type bounded struct {
	slots Slots
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	body := &boundedBody{ReadCloser: resp.Body, ctx: req.Context(), slots: b.slots, most: maxBody, values: maxSeparators}
	switch {
	case !slices.Contains(asked, resp.StatusCode):
		body.most, body.cut = maxErrorBody, true
	case strings.HasSuffix(req.URL.Path, "/auth/tokens"):
		body.most, body.values = maxLogin, maxCatalog
	}
	resp.Body = body
	return resp, nil
}
