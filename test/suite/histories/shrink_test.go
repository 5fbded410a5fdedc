package histories

import (
	"slices"
	"testing"
)

// shrink searches a smaller history that breaks the same promise. It removes faults, actors and steps, first many at once and then one by
// one, as long as the promise stays broken.
func shrink(t *testing.T, h history, r result, dir string) (history, result, int) {
	t.Helper()
	const mostRuns = 150
	s := shrinker{rule: r.violations[0].Rule, best: h, result: r, play: func(h history) result { return run(t, h, dir) }, left: mostRuns}
	for size := -1; size != s.size(); {
		size = s.size()
		s.faults()
		s.actors()
		s.steps()
	}
	return s.best, s.result, mostRuns - s.left
}

type shrinker struct {
	rule   string
	best   history
	result result
	play   func(history) result
	left   int
}

func (s *shrinker) size() int { return s.best.operations() + len(s.best.Faults) + s.best.Replicas }

// try accepts a smaller history if it breaks the same promise.
func (s *shrinker) try(h history) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	r := s.play(h)
	if len(r.violations) == 0 || r.violations[0].Rule != s.rule {
		return false
	}
	s.best, s.result = h, r
	return true
}

func (s *shrinker) faults() {
	s.without(func() int { return len(s.best.Faults) }, func(from, to int) history {
		h := s.best
		h.Faults = slices.Delete(slices.Clone(h.Faults), from, to)
		return h
	})
}

func (s *shrinker) actors() {
	for i := range s.best.Actors {
		if len(s.best.Actors[i].Steps) > 0 {
			s.try(s.withSteps(i, nil))
		}
	}
	for replicas := 1; replicas < s.best.Replicas; replicas++ {
		h := s.best
		h.Replicas = replicas
		if s.try(h) {
			return
		}
	}
}

func (s *shrinker) steps() {
	for i := range s.best.Actors {
		s.without(func() int { return len(s.best.Actors[i].Steps) }, func(from, to int) history {
			return s.withSteps(i, slices.Delete(slices.Clone(s.best.Actors[i].Steps), from, to))
		})
	}
}

// withSteps is the best history with other steps of one actor.
func (s *shrinker) withSteps(i int, steps []step) history {
	h := s.best
	h.Actors = slices.Clone(h.Actors)
	h.Actors[i].Steps = steps
	return h
}

// without removes runs of elements, first half of them, then fewer.
func (s *shrinker) without(length func() int, cut func(from, to int) history) {
	for size := (length() + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < length(); {
			if !s.try(cut(from, min(from+size, length()))) {
				from += size
			}
		}
	}
}
