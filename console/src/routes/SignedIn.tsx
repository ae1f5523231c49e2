import { Navigate } from 'react-router';

/** Whoever follows a link to sign in and is signed in already goes on to the overview. */
export function SignedIn() {
  return <Navigate to="/" replace />;
}
