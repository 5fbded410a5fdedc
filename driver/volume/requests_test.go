package volume

import (
	"strconv"
	"sync"
	"testing"
)

func TestRequestsAreNotedOncePerRequestUpToALimit(t *testing.T) {
	NoteRequest(t.Context(), "req-nowhere") // nobody asked: no panic
	ctx, noted := WithRequests(t.Context())
	NoteRequest(ctx, "")
	NoteRequest(ctx, "req-1")
	if ids := noted.IDs(); len(ids) != 1 || ids[0] != "req-1" {
		t.Errorf("got %v", ids)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { NoteRequest(ctx, strconv.Itoa(i)) })
	}
	all.Wait()
	if ids := noted.IDs(); len(ids) != mostRequests || ids[0] != "req-1" {
		t.Errorf("got %v", ids)
	}
}
