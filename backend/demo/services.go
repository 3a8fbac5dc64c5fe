package demo

import (
	"context"
	"fmt"
	"slices"

	"slipway/backend/session"
	"slipway/gpu"
)

// modelPort is where the model server of a service listens.
const modelPort = 8000

// ServicesOnLab returns the services of a story on the lab server.
func ServicesOnLab(o Options) []session.DeployRequest {
	if o.Story != StoryLab {
		return nil
	}
	spec := desk("", imagePython, "lang", 2, 8*gpu.GiB, share(200))
	spec.Type, spec.Serving = session.Inference, &session.Serving{Port: modelPort,
		Command: []string{"llama-server", "--model", "assistant.gguf", "--metrics", "--port", fmt.Sprint(modelPort)}}
	return []session.DeployRequest{{Name: "assistant", Owner: Person, Spec: spec,
		ServiceWish: session.ServiceWish{Replicas: 1, Rules: []session.ScalingRule{{Source: session.FromFramework,
			Metric: "llamacpp:requests_deferred", ScaleUp: new(2.0), ScaleDown: new(1.0), MaxReplicas: 2}}}}}
}

// Deploy deploys the services of a story that a machine lacks. Those that it has stay as people changed them.
func Deploy(ctx context.Context, on session.Services, services []session.DeployRequest) error {
	known, err := on.ListServices(ctx)
	if err != nil {
		return err
	}
	for _, one := range services {
		if slices.ContainsFunc(known, func(s session.Service) bool { return s.Name == one.Name }) {
			continue
		}
		if _, err := on.DeployService(ctx, one); err != nil {
			return fmt.Errorf("deploy %s: %w", one.Name, err)
		}
	}
	return nil
}
