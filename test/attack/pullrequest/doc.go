// Package pullrequest holds the attacks of a hostile pull request: whoever writes every file of a checkout that a pipeline runs the
// generator on. It also checks every object that the generator emits for what it asks for.
package pullrequest
