// Package router passes HTTP requests to the replicas of inference services. It finds the service by the model in the
// body of a request under /v1, or by the name in /services/NAME, checks the token, chooses the replica with the fewest
// requests, and passes the answer on byte by byte. While no replica is ready, requests wait, up to limits on their
// number and time.
//
// The router repeats a request only if it could not open a connection or, where a service permits it, if a replica
// closed its connection without a byte of an answer. A broken answer is passed on as a broken answer. The router's own
// errors have the form of OpenAI's. It knows no engine, store or planner: [Router.Set] gives it the services, and the
// functions of its [Config] report what happens.
package router
