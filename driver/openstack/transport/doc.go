// Package transport is what surrounds each HTTP request to OpenStack. Every wrapper is an http.RoundTripper that takes the next one.
// The order is retry(budget(count(next))), which driver/controller.go puts together: every attempt of a retry spends the budget and counts.
//
// What the package keeps in memory, for each cloud: the limits of a Budget, which it reduces while the cloud asks for fewer requests.
// After a restart the driver starts with the configured limits again, and the cloud may have to ask once more.
package transport
