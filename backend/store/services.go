package store

import (
	"strconv"

	bolt "go.etcd.io/bbolt"
)

var bucketServices = []byte("services") // name → what the agent keeps of an inference service

// Services returns what is stored of inference services, by their names.
func Services[T any](s *Store) (map[string]T, error) { return all[T](s, bucketServices) }

// PutService stores what the agent keeps of a service.
func (t *Tx) PutService(name string, service any) error {
	return put(t.tx.Bucket(bucketServices), []byte(name), service)
}

// DropService removes a service.
func (t *Tx) DropService(name string) error { return t.tx.Bucket(bucketServices).Delete([]byte(name)) }

// ServicePort is the port of loopback on which the services of this machine were reached before; 0: none.
func (s *Store) ServicePort() (int, error) {
	return view(s.db, func(t *Tx) (int, error) {
		port, _ := strconv.Atoi(string(t.tx.Bucket(bucketMeta).Get(metaServicePort)))
		return port, nil
	})
}

// SetServicePort stores the port on which services are reached.
func (s *Store) SetServicePort(port int) error {
	return writeError(s.db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(metaServicePort, []byte(strconv.Itoa(port)))
	}))
}
