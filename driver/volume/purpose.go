package volume

import (
	"context"
	"strings"
)

type purposeKey struct{}

// WithPurpose notes in a wait's context what it waits for, without the names of the objects.
func WithPurpose(ctx context.Context, what string) context.Context {
	purpose, _, _ := strings.Cut(what, " (") // what was seen
	purpose, _, _ = strings.Cut(purpose, " server ")
	return context.WithValue(ctx, purposeKey{}, purpose)
}

// Purpose says what a wait is for, such as "become available", so that a Waiter can learn how long such waits last. Empty where
// nobody said.
func Purpose(ctx context.Context) string {
	purpose, _ := ctx.Value(purposeKey{}).(string)
	return purpose
}
