package cli

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// question is what explain is asked: for a field of an object, the classes of a volume type, or a decision.
type question struct {
	object, field string
	volumeType    string
	isType        bool
	isDecision    bool
	dir           string
}

// parseQuestion reads the command line of explain, and says what a person probably meant.
func parseQuestion(args []string) (question, error) {
	if len(args) == 0 {
		return question{}, usage("name what to explain: KIND/NAME FIELD, such as storageclass/fast volumeBindingMode; or volumetype/NAME; or the ID of a decision, as plan prints it")
	}
	q, rest := question{object: args[0], dir: "."}, args[1:]
	q.volumeType, q.isType = volumeTypeOf(q.object)
	q.isDecision = !q.isType && !strings.Contains(q.object, "/")
	if err := q.checkOrder(rest); err != nil {
		return q, err
	}
	if !q.isType && !q.isDecision {
		if len(rest) == 0 || len(rest) == 1 && isBundle(rest[0]) {
			return q, usage("explain %s: FIELD is missing: a path in the object, such as explain %s metadata.name", q.object, q.object)
		}
		q.field, rest = rest[0], rest[1:]
	}
	if len(rest) > 1 {
		return q, usage("explain %s: want one DIR after it, got %s; run explain once for each object", q.object, strings.Join(rest, " "))
	}
	if len(rest) == 1 {
		q.dir = rest[0]
	}
	return q, nil
}

// checkOrder finds words that are parted, joined or ordered in another way.
func (q *question) checkOrder(rest []string) error {
	parts := strings.SplitN(q.object, "/", 3)
	switch {
	case len(rest) > 0 && isBundle(q.object):
		return usage("explain %s: the directory comes last: explain %s %s", q.object, strings.Join(rest, " "), q.object)
	case len(parts) == 1 && isAnyKind(q.object) && len(rest) > 0 && !isBundle(rest[0]):
		return usage("explain %s %s: write the kind and the name as one word: %s/%s", q.object, rest[0], q.object, rest[0])
	case len(parts) == 1 && isAnyKind(q.object), len(parts) == 2 && parts[1] == "":
		return usage("explain %s: NAME is missing: want %s/NAME", q.object, parts[0])
	case len(parts) == 3 && !q.isType && isAnyKind(parts[0]):
		return usage("explain %s: write the field as a word of its own: explain %s/%s %s", q.object, parts[0], parts[1], strings.ReplaceAll(parts[2], "/", "."))
	}
	return nil
}

// isAnyKind is whether a word names a kind of object that a bundle may hold, or the kind of a volume type. The decision csiDriver is none.
func isAnyKind(word string) bool {
	_, isDecision := plan.IDs.Values()[word]
	return !isDecision && slices.ContainsFunc(append(verify.Kinds(), volumeTypeKind), func(kind string) bool { return isKind(word, kind) })
}
