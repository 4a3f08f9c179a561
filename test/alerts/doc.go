// Package alerts tests the alerts, the dashboard and the page of docs/observability: each
// alert fires in a real Prometheus, by the failure that it is about.
package alerts
