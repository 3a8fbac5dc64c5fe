package store

var bucketServices = []byte("services") // name → what the agent keeps of an inference service

// Services returns what is stored of inference services, by their names.
func Services[T any](s *Store) (map[string]T, error) { return all[T](s, bucketServices) }

// PutService stores what the agent keeps of a service.
func (t *Tx) PutService(name string, service any) error {
	return put(t.tx.Bucket(bucketServices), []byte(name), service)
}

// DropService removes a service.
func (t *Tx) DropService(name string) error { return t.tx.Bucket(bucketServices).Delete([]byte(name)) }
