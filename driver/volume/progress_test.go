package volume

import (
	"strconv"
	"sync"
	"testing"
)

func TestRequestsAreNotedOncePerRequestUpToALimit(t *testing.T) {
	NoteRequest(t.Context(), "req-nowhere") // nobody asked: no panic
	ctx, noted := WithProgress(t.Context())
	NoteRequest(ctx, "")
	NoteRequest(ctx, "req-1")
	if ids := noted.Requests(); len(ids) != 1 || ids[0] != "req-1" {
		t.Errorf("got %v", ids)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { NoteRequest(ctx, strconv.Itoa(i)) })
	}
	all.Wait()
	if ids := noted.Requests(); len(ids) != mostRequests || ids[0] != "req-1" {
		t.Errorf("got %v", ids)
	}
}

func TestTheStepIsTheInnermostThatHasNotEnded(t *testing.T) {
	BeginStep(t.Context(), "nobody asked")()
	NoteState(t.Context(), "nobody asked")
	ctx, p := WithProgress(t.Context())
	want := func(what string) {
		t.Helper()
		if s, waits := p.Step(); s.What != what || waits != (what != "") || waits && s.Since.IsZero() {
			t.Errorf("want %q, got %q (%v)", what, s.What, s.Since)
		}
	}
	want("")
	endWait := BeginStep(ctx, "waiting for the volume")
	endRead := BeginStep(ctx, "reading the volume")
	want("reading the volume")
	endRead()
	endRead() // twice does no harm
	want("waiting for the volume")
	endWait()
	want("")
	NoteState(ctx, "volume v is detaching")
	if p.State() != "volume v is detaching" {
		t.Errorf("got %q", p.State())
	}
	BeginStep(t.Context(), "reading")
	none := ProgressOf(t.Context())
	if _, waits := none.Step(); waits || none.State() != "" || none.Requests() != nil {
		t.Error("a context without an RPC has progress")
	}
}
