// Package pullrequest has the attacks of a hostile pull request. Its author writes every file of a checkout that a pipeline runs the
// generator on. The package also checks the rights that every generated object requests.
package pullrequest
