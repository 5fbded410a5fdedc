package volume

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
)

// extender is a fakeCloud whose volumes can grow.
type extender struct{ *fakeCloud }

func (c extender) Extend(_ context.Context, id ID, size Size, attached bool) error {
	if err := c.called("Extend", id, attached); err != nil {
		return err
	}
	c.change(id, func(v *Volume) { v.Status = "extending" })
	c.later(id, func(v *Volume) {
		v.Status = InUse
		if !attached {
			v.Status = Available
		}
		if c.outcome != "" {
			v.Status = c.outcome
			return
		}
		v.Size = size
	})
	return nil
}

func growing(c *fakeCloud) *Volumes { return NewVolumes(extender{c}, c, Options{}) }

func TestExpandReturnsOnceCinderShowsTheSize(t *testing.T) {
	for _, status := range []Status{Available, InUse} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(Volume{ID: id(1), Status: status, Size: GiB(1)})
			v, err := growing(c).Expand(within(t, 60), id(1), Range{Required: GiB(2) + 1})
			if err != nil || v.Size != GiB(3) || v.Status != status {
				t.Errorf("got %v, %v", v, err)
			}
			if c.count("Extend"+string(id(1))) != 1 || !strings.Contains(c.calls[1], map[bool]string{true: "true", false: "false"}[status == InUse]) {
				t.Error(c.calls)
			}
		})
	}
}

func TestAVolumeThatIsLargeEnoughStays(t *testing.T) {
	c := newCloud(Volume{ID: id(1), Status: "error_extending", Size: GiB(5)})
	v, err := growing(c).Expand(t.Context(), id(1), Range{Required: GiB(2)})
	if err != nil || v.Size != GiB(5) || c.count("Extend") != 0 {
		t.Errorf("got %v, %v after %v", v, err, c.calls)
	}
}

func TestAnExtensionUnderWayIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: "extending", Size: GiB(1)})
		c.later(id(1), func(v *Volume) { v.Status, v.Size = Available, GiB(2) })
		v, err := growing(c).Expand(within(t, 60), id(1), Range{Required: GiB(2)})
		if err != nil || v.Size != GiB(2) || c.count("Extend") != 0 {
			t.Errorf("got %v, %v after %v", v, err, c.calls)
		}
	})
}

func TestAnExtensionThatFailsSaysWhy(t *testing.T) {
	for _, outcome := range []Status{"error_extending", Available} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(Volume{ID: id(1), Status: Available, Size: GiB(1)})
			c.outcome, c.reason = outcome, "the pool is full"
			_, err := growing(c).Expand(within(t, 60), id(1), Range{Required: GiB(2)})
			wantKind(t, err, Failed, true)
			if !strings.Contains(err.Error(), "the pool is full") {
				t.Error(err)
			}
		})
	}
}

func TestExpansionsThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		id   ID
		size Range
		kind Kind
	}{
		"no volume":        {id(9), Range{Required: GiB(2)}, NotFound},
		"no volume's id":   {"vol", Range{Required: GiB(2)}, NotFound},
		"above the limit":  {id(1), Range{Required: 1, Limit: GiB(3)}, OutOfRange},
		"no GiB fits":      {id(1), Range{Required: 1, Limit: 2}, OutOfRange},
		"a negative range": {id(1), Range{Required: -1}, InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := growing(newCloud(Volume{ID: id(1), Status: Available, Size: GiB(5)})).Expand(t.Context(), test.id, test.size)
			wantKind(t, err, test.kind, false)
		})
	}
	_, err := service(newCloud()).Expand(t.Context(), id(1), Range{Required: GiB(2)})
	wantKind(t, err, Unimplemented, false)
}

func testExpandIn(t *testing.T, status Status) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: status, Size: GiB(1)})
		_, err := growing(c).Expand(within(t, 60), id(1), Range{Required: GiB(2)})
		sent := c.count("Extend") == 1
		switch status.Meaning().Extend {
		case Proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case Wait:
			wantKind(t, err, DeadlineExceeded, false)
		case BeingDeleted:
			wantKind(t, err, NotFound, false)
		default:
			wantKind(t, err, Conflict, false)
		}
		if sent && status != Available && status != InUse {
			t.Error("Cinder was asked")
		}
	})
}

// What an expansion does with a volume in each status: the requests it sends, the end it comes to.
func TestExpandInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) { testExpandIn(t, status) })
	}
}
