package transport

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryAttemptIsCounted(t *testing.T) {
	t.Parallel()
	m := &meter{}
	rt := Count(answering(answer{status: 202}, answer{status: 413}, answer{err: errors.New("reset")}), m)
	for _, want := range []int{202, 413, 0} {
		if status, err := send(t.Context(), t, rt, "POST"); status != want || (err == nil) != (want > 0) {
			t.Errorf("the answer was changed: %d, %v; want %d", status, err, want)
		}
	}
	if diff := cmp.Diff([]int{202, 413, 0}, m.statuses); diff != "" || len(m.took) != 3 || m.took[0] > time.Minute {
		t.Errorf("-want +got\n%s, took %v", diff, m.took)
	}
}
