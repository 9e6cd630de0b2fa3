(** Ordered claims: why every schedule of a batch ends like its serial run, for any number of calls.

    The model.  A call is a program: it reads and writes locations, and what it reads decides what it does next.  It
    holds claims.  Steps of different calls interleave in any way that the rules of [step] allow:

    - a call starts when every earlier call with a conflicting claim has ended (its tickets are granted in call
      order), and when a slot is free;
    - a running call does one read or one write at a time;
    - a call ends when its program has returned, or when it is cancelled, before it starts or in the midst of it.

    The theorems.

    - [every_run_is_serial] and [complete_run_is_serial]: every run, complete or not, has the memory and the results
      of the same calls run one after the other, for calls that touch only what they claim.
    - [cut_calls_change_nothing_else]: a call that ends early counts as the part of it that ran.
    - [some_call_can_go_on] and [every_run_ends]: a batch never deadlocks, and no run is infinite if each program ends.
    - [places_hold] and [some_call_can_go_on_with_places]: the same where calls take places of resources, in call order;
      [rates_hold] and [some_call_can_go_on_in_time]: and where they wait for rates.
    - [merge_ignores_the_order_of_ends], [merge_ignores_cancelled_calls] and [merge_is_serial]: the state after a lane.
    - [results_are_in_call_order], [results_are_not_taken_back] and [every_result_is_handed_over]: what a reader has.
    - [every_batch_is_serial] and [batch_is_serial]: all of these together.  Lanes follow each other, their calls see
      the state as of the lane's start, and the batch ends in the memory, the state and the results of the serial run.
      [claims_keep_lanes_apart]: claims on the state give these theorems their hypothesis.

    Each hypothesis has a counterexample below, which shows that the theorem is false without it.

    No axiom is used: [Print Assumptions] at the end of the file says so for each theorem. *)

From Coq Require Import List Arith Lia Bool Permutation Sorted.
Import ListNotations.

(** * Locations and claims *)

(** A location is a path: the names on the way from the root.  A file and a service are paths.  So is a key
    of the state, but only in claims: what it holds is no memory ([request] says what a call sees of it). *)
Definition loc := list nat.
Definition loc_eq_dec : forall a b : loc, {a = b} + {a <> b} := list_eq_dec Nat.eq_dec.

Inductive mode := READ | WRITE.

Record claim := Claim { resource : loc; how : mode; subtree : bool }.

Fixpoint prefix (a b : loc) : bool :=
  match a, b with
  | [], _ => true
  | x :: a', y :: b' => Nat.eqb x y && prefix a' b'
  | _ :: _, [] => false
  end.

Definition same (a b : loc) : bool := if loc_eq_dec a b then true else false.

(** Whether a claim speaks of a location. *)
Definition reaches (c : claim) (l : loc) : bool :=
  same (resource c) l || (subtree c && prefix (resource c) l).

(** A claim to write allows reads too. *)
Definition allows (c : claim) (m : mode) (l : loc) : bool :=
  reaches c l && match m, how c with WRITE, READ => false | _, _ => true end.

Definition covered (cs : list claim) (m : mode) (l : loc) : Prop :=
  exists c, In c cs /\ allows c m l = true.

(** Two claims conflict when one location can be meant by both and one of them may write. *)
Definition writes (c : claim) : bool := match how c with WRITE => true | READ => false end.

Definition overlap (c d : claim) : bool :=
  reaches c (resource d) || reaches d (resource c).

Definition conflict (c d : claim) : bool := overlap c d && (writes c || writes d).

Definition conflicts (cs ds : list claim) : bool :=
  existsb (fun c => existsb (conflict c) ds) cs.

Lemma same_true : forall a b, same a b = true <-> a = b.
Proof. intros a b; unfold same; destruct (loc_eq_dec a b); split; congruence. Qed.

Lemma prefix_spec : forall a b, prefix a b = true <-> exists c, b = a ++ c.
Proof.
  induction a as [|x a IH]; intros b; simpl.
  - split; [intros _; exists b; reflexivity | reflexivity].
  - destruct b as [|y b]; [split; [discriminate | intros [c H]; discriminate]|].
    rewrite andb_true_iff, Nat.eqb_eq, IH. split.
    + intros [-> [c ->]]. exists c. reflexivity.
    + intros [c H]. injection H as -> ->. split; [reflexivity | exists c; reflexivity].
Qed.

(** Two prefixes of one path are prefixes of each other. *)
Lemma prefixes_meet : forall a b l, prefix a l = true -> prefix b l = true -> prefix a b = true \/ prefix b a = true.
Proof.
  induction a as [|x a IH]; intros b l Ha Hb; [left; reflexivity|].
  destruct l as [|y l]; [discriminate|].
  destruct b as [|z b]; [right; reflexivity|].
  simpl in *. apply andb_true_iff in Ha as [Hx Ha]. apply andb_true_iff in Hb as [Hz Hb].
  apply Nat.eqb_eq in Hx. apply Nat.eqb_eq in Hz. subst.
  rewrite Nat.eqb_refl. simpl. eauto.
Qed.

(** A location that two claims reach makes them overlap. *)
Lemma reaching_overlaps : forall c d l, reaches c l = true -> reaches d l = true -> overlap c d = true.
Proof.
  unfold overlap, reaches. intros c d l Hc Hd.
  apply orb_true_iff in Hc. apply orb_true_iff in Hd.
  destruct Hc as [Hc|Hc], Hd as [Hd|Hd].
  - apply same_true in Hc. apply same_true in Hd.
    apply orb_true_iff; left. apply orb_true_iff; left. apply same_true. congruence.
  - apply same_true in Hc. rewrite Hc, Hd. now rewrite !orb_true_r.
  - apply same_true in Hd. rewrite Hd, Hc. now rewrite !orb_true_r.
  - apply andb_true_iff in Hc as [Sc Pc]. apply andb_true_iff in Hd as [Sd Pd].
    rewrite Sc, Sd. simpl.
    destruct (prefixes_meet _ _ _ Pc Pd) as [H|H]; rewrite H; rewrite ?orb_true_r; reflexivity.
Qed.

Lemma covered_conflicts : forall cs ds m n l,
  covered cs m l -> covered ds n l -> m = WRITE \/ n = WRITE -> conflicts cs ds = true.
Proof.
  unfold covered, allows, conflicts. intros cs ds m n l (c & Ic & Hc) (d & Id & Hd) W.
  apply existsb_exists; exists c; split; [exact Ic|].
  apply existsb_exists; exists d; split; [exact Id|].
  apply andb_true_iff in Hc as [Rc Mc]. apply andb_true_iff in Hd as [Rd Md].
  unfold conflict. rewrite (reaching_overlaps _ _ _ Rc Rd). simpl. unfold writes.
  destruct W as [-> | ->].
  - destruct (how c); [discriminate | reflexivity].
  - destruct (how d); [discriminate | now rewrite orb_true_r].
Qed.

(** * Programs and memory *)

Definition memory := loc -> nat.

Definition set (m : memory) (l : loc) (v : nat) : memory :=
  fun k => if loc_eq_dec k l then v else m k.

(** What a call does: [Return] its result, [Read] a location and go on with what was found, or [Write] one.  It may go
    on for ever: that a program ends is a hypothesis ([ends]) of the one theorem that needs it. *)
CoInductive program :=
| Return (result : nat)
| Read (l : loc) (next : nat -> program)
| Write (l : loc) (v : nat) (next : program).

(** A call keeps its promise when each access that it can make is covered by its claims. *)
CoInductive honest (cs : list claim) : program -> Prop :=
| Honest_return : forall r, honest cs (Return r)
| Honest_read : forall l next, covered cs READ l -> (forall v, honest cs (next v)) -> honest cs (Read l next)
| Honest_write : forall l v next, covered cs WRITE l -> honest cs next -> honest cs (Write l v next).

(** One access; a program that has returned does nothing. *)
Definition one (p : program) (m : memory) : program * memory :=
  match p with
  | Return r => (Return r, m)
  | Read l next => (next (m l), m)
  | Write l v next => (next, set m l v)
  end.

(** [n] accesses. *)
Fixpoint many (n : nat) (p : program) (m : memory) : program * memory :=
  match n with
  | 0 => (p, m)
  | S n' => let (p', m') := many n' p m in one p' m'
  end.

(** The whole program, with nothing beside it: what it returns, and the memory that it leaves. *)
Inductive alone : program -> memory -> nat -> memory -> Prop :=
| Alone_return : forall r m, alone (Return r) m r m
| Alone_read : forall l next m r m', alone (next (m l)) m r m' -> alone (Read l next) m r m'
| Alone_write : forall l v next m r m', alone next (set m l v) r m' -> alone (Write l v next) m r m'.

Lemma alone_once : forall p m r n s o, alone p m r n -> alone p m s o -> r = s /\ n = o.
Proof. intros p m r n s o A. revert s o. induction A; intros s o B; inversion B; subst; auto. Qed.

Lemma alone_one : forall p m r n, alone (fst (one p m)) (snd (one p m)) r n -> alone p m r n.
Proof. intros [q|l k|l v k] m r n A; simpl in *; [exact A | now constructor | now constructor]. Qed.

Lemma alone_many : forall k p m r n, alone (fst (many k p m)) (snd (many k p m)) r n -> alone p m r n.
Proof.
  induction k; intros p m r n A; simpl in A; [exact A|].
  specialize (IHk p m r n). destruct (many k p m) as [p' m']. simpl in *. apply IHk. now apply alone_one.
Qed.

Lemma honest_read : forall cs l k, honest cs (Read l k) -> covered cs READ l.
Proof. intros cs l k H. now inversion H. Qed.

Lemma honest_write : forall cs l v k, honest cs (Write l v k) -> covered cs WRITE l.
Proof. intros cs l v k H. now inversion H. Qed.

Lemma honest_one : forall cs p m, honest cs p -> honest cs (fst (one p m)).
Proof. intros cs [r|l k|l v k] m H; inversion H; subst; simpl; auto. Qed.

Lemma honest_many : forall cs n p m, honest cs p -> honest cs (fst (many n p m)).
Proof.
  induction n; intros p m H; [exact H|]. simpl. specialize (IHn p m H).
  destruct (many n p m). simpl in *. now apply honest_one.
Qed.

(** * A batch that runs *)

Inductive status := Waiting | Running | Ended.

(** A call and what has become of it: how many accesses it has made, and what is left of its program. *)
Record call := Call { claims : list claim; whole : program; made : nat; left : program; at_ : status }.

Definition submitted (cs : list claim) (p : program) : call := Call cs p 0 p Waiting.
Definition started (c : call) : call := Call (claims c) (whole c) (made c) (left c) Running.
Definition advanced (c : call) (p : program) : call := Call (claims c) (whole c) (S (made c)) p Running.
Definition ended (c : call) : call := Call (claims c) (whole c) (made c) (left c) Ended.

Definition is_running (c : call) : bool := match at_ c with Running => true | _ => false end.
Definition running (cs : list call) : nat := length (filter is_running cs).

(** When the tickets of a call are granted, given the calls before it. *)
Definition gate := list call -> call -> list call -> Prop.

(** Tickets are taken in call order: a call waits for each earlier one that conflicts with it, until that has ended. *)
Definition in_call_order (earlier : list call) (c : call) (later : list call) : Prop :=
  forall e, In e earlier -> conflicts (claims e) (claims c) = true -> at_ e = Ended.

Section Steps.
  Variable limit : nat.
  Variable granted : gate.

  Inductive step : list call * memory -> list call * memory -> Prop :=
  | Start : forall before c after m,
      at_ c = Waiting -> granted before c after -> running (before ++ c :: after) < limit ->
      step (before ++ c :: after, m) (before ++ started c :: after, m)
  | Access : forall before c after m p' m',
      at_ c = Running -> (forall r, left c <> Return r) -> one (left c) m = (p', m') ->
      step (before ++ c :: after, m) (before ++ advanced c p' :: after, m')
  | Finish : forall before c after m r,
      at_ c = Running -> left c = Return r ->
      step (before ++ c :: after, m) (before ++ ended c :: after, m)
  | Cut : forall before c after m,
      at_ c <> Ended ->
      step (before ++ c :: after, m) (before ++ ended c :: after, m).

  (** Any number of steps. *)
  Inductive run : list call * memory -> list call * memory -> Prop :=
  | Nothing : forall s, run s s
  | More : forall s t u, run s t -> step t u -> run s u.
End Steps.

Definition complete (cs : list call) : Prop := forall c, In c cs -> at_ c = Ended.

Definition all_submitted (cs : list call) : Prop :=
  forall c, In c cs -> made c = 0 /\ left c = whole c /\ at_ c = Waiting.

Definition all_honest (cs : list call) : Prop := forall c, In c cs -> honest (claims c) (whole c).

(** * The serial run *)

(** One call after the other, each as far as it came. *)
Fixpoint serially (cs : list call) (m : memory) : list program * memory :=
  match cs with
  | [] => ([], m)
  | c :: rest =>
      let (p, m') := many (made c) (whole c) m in
      let (ps, m'') := serially rest m' in (p :: ps, m'')
  end.

(** One call after the other, each to its end: the results, and the memory after them. *)
Inductive serial_run : list call -> memory -> list nat -> memory -> Prop :=
| Serial_none : forall m, serial_run [] m [] m
| Serial_call : forall c cs m r n rs o,
    alone (whole c) m r n -> serial_run cs n rs o -> serial_run (c :: cs) m (r :: rs) o.

Lemma serial_run_once : forall cs m rs n qs o, serial_run cs m rs n -> serial_run cs m qs o -> rs = qs /\ n = o.
Proof.
  intros cs m rs n qs o R. revert qs o. induction R as [m|c cs m r n rs o A R IH]; intros qs p Q.
  - inversion Q. auto.
  - inversion Q as [|? ? ? ? ? ? ? B Q']; subst.
    destruct (alone_once _ _ _ _ _ _ A B) as [-> <-]. destruct (IH _ _ Q') as [-> ->]. auto.
Qed.

(** Memories that are the same, but perhaps at [x]. *)
Definition but (x : loc) (m n : memory) : Prop := forall l, l <> x -> m l = n l.
Definition equal (m n : memory) : Prop := forall l, m l = n l.

Lemma set_here : forall m l v, set m l v l = v.
Proof. intros; unfold set; destruct (loc_eq_dec l l); congruence. Qed.

Lemma set_there : forall m l v k, k <> l -> set m l v k = m k.
Proof. intros; unfold set; destruct (loc_eq_dec k l); congruence. Qed.

(** A program that may not write [x] leaves it as it was. *)
Lemma one_keeps : forall cs p m x,
  honest cs p -> ~ covered cs WRITE x -> snd (one p m) x = m x.
Proof.
  intros cs [r|l k|l v k] m x H N; simpl; try reflexivity.
  apply set_there. intros ->. apply N, (honest_write _ _ _ _ H).
Qed.

Lemma many_keeps : forall cs n p m x,
  honest cs p -> ~ covered cs WRITE x -> snd (many n p m) x = m x.
Proof.
  intros cs n. induction n; intros p m x H N; [reflexivity|]. simpl.
  specialize (IHn p m x H N). pose proof (honest_many cs n p m H) as H'.
  destruct (many n p m) as [p' m']. simpl in *. rewrite <- IHn. eapply one_keeps; eauto.
Qed.

(** A program that may not touch [x] does the same whatever stands there. *)
Lemma one_blind : forall cs p m n x,
  honest cs p -> ~ covered cs READ x -> but x m n ->
  fst (one p m) = fst (one p n) /\ but x (snd (one p m)) (snd (one p n)).
Proof.
  intros cs [r|l k|l v k] m n x H N B; simpl.
  - split; [reflexivity | exact B].
  - split; [|exact B]. rewrite (B l); [reflexivity|]. intros ->. apply N, (honest_read _ _ _ H).
  - split; [reflexivity|]. intros y Hy. unfold set. destruct (loc_eq_dec y l); auto.
Qed.

Lemma many_blind : forall cs k p m n x,
  honest cs p -> ~ covered cs READ x -> but x m n ->
  fst (many k p m) = fst (many k p n) /\ but x (snd (many k p m)) (snd (many k p n)).
Proof.
  intros cs k. induction k; intros p m n x H N B; [split; [reflexivity | exact B]|]. simpl.
  destruct (IHk p m n x H N B) as [E B']. pose proof (honest_many cs k p m H) as H'.
  destruct (many k p m) as [p1 m1], (many k p n) as [p2 m2]. simpl in *. subst p2.
  eapply one_blind; eauto.
Qed.

(** A claim that covers a write covers a read. *)
Lemma write_covers_read : forall cs x, covered cs WRITE x -> covered cs READ x.
Proof.
  intros cs x (c & I & H). exists c. split; [exact I|].
  unfold allows in *. apply andb_true_iff in H as [R _]. now rewrite R.
Qed.

(** What later calls did does not depend on a location that none of those that began may read. *)
Definition keeps_away (m : mode) (x : loc) (cs : list call) : Prop :=
  forall c, In c cs -> made c = 0 \/ ~ covered (claims c) m x.

Lemma serially_keeps : forall cs m x,
  all_honest cs -> keeps_away WRITE x cs -> snd (serially cs m) x = m x.
Proof.
  induction cs as [|c cs IH]; intros m x H K; [reflexivity|]. simpl.
  assert (E : snd (many (made c) (whole c) m) x = m x).
  { destruct (K c (or_introl eq_refl)) as [Z|Z]; [now rewrite Z|].
    eapply many_keeps; [apply (H c (or_introl eq_refl)) | exact Z]. }
  destruct (many (made c) (whole c) m) as [p m']. simpl in E.
  specialize (IH m' x (fun d I => H d (or_intror I)) (fun d I => K d (or_intror I))).
  destruct (serially cs m') as [ps m'']. simpl in *. congruence.
Qed.

Lemma serially_blind : forall cs m n x,
  all_honest cs -> keeps_away READ x cs -> but x m n ->
  fst (serially cs m) = fst (serially cs n) /\ but x (snd (serially cs m)) (snd (serially cs n)).
Proof.
  induction cs as [|c cs IH]; intros m n x H K B; [split; [reflexivity | exact B]|]. simpl.
  assert (E : fst (many (made c) (whole c) m) = fst (many (made c) (whole c) n)
            /\ but x (snd (many (made c) (whole c) m)) (snd (many (made c) (whole c) n))).
  { destruct (K c (or_introl eq_refl)) as [Z|Z]; [rewrite Z; split; [reflexivity | exact B]|].
    eapply many_blind; [apply (H c (or_introl eq_refl)) | exact Z | exact B]. }
  destruct (many (made c) (whole c) m) as [p1 m1], (many (made c) (whole c) n) as [p2 m2].
  simpl in E. destruct E as [-> B'].
  destruct (IH m1 m2 x (fun d I => H d (or_intror I)) (fun d I => K d (or_intror I)) B') as [E' B''].
  destruct (serially cs m1) as [ps1 n1], (serially cs m2) as [ps2 n2]. simpl in *.
  subst ps2. split; [reflexivity | exact B''].
Qed.

Lemma serially_app : forall cs ds m,
  serially (cs ++ ds) m =
  (fst (serially cs m) ++ fst (serially ds (snd (serially cs m))), snd (serially ds (snd (serially cs m)))).
Proof.
  induction cs as [|c cs IH]; intros ds m; simpl.
  - destruct (serially ds m); reflexivity.
  - destruct (many (made c) (whole c) m) as [p m']. rewrite IH.
    destruct (serially cs m') as [ps m'']. simpl.
    destruct (serially ds m''). reflexivity.
Qed.

(** * The invariant of every run *)

(** A call that has made an access has been let in: each earlier call that conflicts with it had ended. *)
Definition tickets_hold (cs : list call) : Prop :=
  forall before c after, cs = before ++ c :: after -> at_ c <> Ended ->
  forall d, In d after -> conflicts (claims c) (claims d) = true -> made d = 0 /\ at_ d <> Running.

Definition waits_unmade (cs : list call) : Prop := forall c, In c cs -> at_ c = Waiting -> made c = 0.

Definition as_serial (cs : list call) (m0 m : memory) : Prop :=
  fst (serially cs m0) = map left cs /\ equal (snd (serially cs m0)) m.

Record good (m0 : memory) (cs : list call) (m : memory) : Prop := Good {
  good_honest : all_honest cs;
  good_tickets : tickets_hold cs;
  good_waits : waits_unmade cs;
  good_serial : as_serial cs m0 m }.

(** Replacing a call by one with the same claims, program and accesses changes no serial run. *)
Lemma serially_same_made : forall before c d after m,
  whole c = whole d -> made c = made d ->
  serially (before ++ c :: after) m = serially (before ++ d :: after) m.
Proof. intros. rewrite !serially_app. simpl. now rewrite H, H0. Qed.

Lemma In_middle : forall {A} (x y : A) before after,
  In x (before ++ y :: after) <-> In x before \/ x = y \/ In x after.
Proof. intros. rewrite in_app_iff. simpl. intuition auto. Qed.

(** How a list is split at a call, when one of its calls is replaced. *)
Lemma split_two : forall {A} (a b : list A) x (c d : list A) y,
  a ++ x :: b = c ++ y :: d ->
  (a = c /\ x = y /\ b = d) \/
  (exists e, c = a ++ x :: e /\ b = e ++ y :: d) \/
  (exists e, a = c ++ y :: e /\ d = e ++ x :: b).
Proof.
  induction a as [|z a IH]; intros b x c d y H.
  - destruct c as [|w c]; simpl in H; injection H as -> H; subst.
    + left. auto.
    + right; left. exists c. auto.
  - destruct c as [|w c]; simpl in H; injection H as -> H; subst.
    + right; right. exists a. auto.
    + destruct (IH b x c d y H) as [(-> & -> & ->)|[(e & -> & ->)|(e & -> & ->)]].
      * left. auto.
      * right; left. exists e. auto.
      * right; right. exists e. auto.
Qed.

(** The tickets still hold when one call is replaced by one of the same claims ... *)
Lemma tickets_replace : forall before c c' after,
  claims c' = claims c ->
  tickets_hold (before ++ c :: after) ->
  (* ... which has ended if the old one had, *)
  (at_ c = Ended -> at_ c' = Ended) ->
  (* ... and which has begun only if the old one had, or its tickets are granted. *)
  ((made c' = 0 /\ at_ c' <> Running) \/ (made c <> 0 \/ at_ c = Running) \/ in_call_order before c after) ->
  tickets_hold (before ++ c' :: after).
Proof.
  intros before c c' after C T E B a x b Eq Nx d Id K.
  symmetry in Eq. destruct (split_two _ _ _ _ _ _ Eq) as [(-> & -> & ->)|[(e & -> & ->)|(e & -> & ->)]].
  - rewrite C in K. apply (T before c after eq_refl); auto.
  - apply In_middle in Id as [Id|[->|Id]].
    + apply (T a x (e ++ c :: after)); [now rewrite <- app_assoc | exact Nx | apply In_middle; auto | exact K].
    + rewrite C in K.
      assert (Tc : made c = 0 /\ at_ c <> Running).
      { apply (T a x (e ++ c :: after)); [now rewrite <- app_assoc | exact Nx | apply In_middle; auto | exact K]. }
      destruct B as [B|[[B|B]|B]]; [exact B | destruct Tc; contradiction | destruct Tc; contradiction |].
      exfalso. apply Nx. apply (B x); [apply In_middle; auto | exact K].
    + apply (T a x (e ++ c :: after)); [now rewrite <- app_assoc | exact Nx | apply In_middle; auto | exact K].
  - apply (T (before ++ c :: e) x b); [now rewrite <- app_assoc | exact Nx | exact Id | exact K].
Qed.

Lemma honest_replace : forall before c c' after,
  all_honest (before ++ c :: after) -> claims c' = claims c -> whole c' = whole c ->
  all_honest (before ++ c' :: after).
Proof.
  intros before c c' after H C W d I. apply In_middle in I as [I|[->|I]].
  - apply H, In_middle. auto.
  - rewrite C, W. apply H, In_middle. auto.
  - apply H, In_middle. auto.
Qed.

Lemma waits_replace : forall before c c' after,
  waits_unmade (before ++ c :: after) -> at_ c' <> Waiting -> waits_unmade (before ++ c' :: after).
Proof.
  intros before c c' after H N d I E. apply In_middle in I as [I|[->|I]].
  - apply H; [apply In_middle; auto | exact E].
  - contradiction.
  - apply H; [apply In_middle; auto | exact E].
Qed.

Lemma serially_length : forall cs m, length (fst (serially cs m)) = length cs.
Proof.
  induction cs as [|c cs IH]; intros m; [reflexivity|]. simpl.
  destruct (many (made c) (whole c) m) as [p n]. specialize (IH n).
  destruct (serially cs n). simpl in *. congruence.
Qed.

Lemma app_split : forall {A} (a b c d : list A), length a = length c -> a ++ b = c ++ d -> a = c /\ b = d.
Proof.
  induction a as [|x a IH]; intros b [|y c] d N E; simpl in *; try discriminate; [auto|].
  injection N as N. injection E as -> E. destruct (IH _ _ _ N E) as [-> ->]. auto.
Qed.

(** What is left of a call is what its serial run leaves. *)
Lemma serial_left : forall before c after m0 m,
  as_serial (before ++ c :: after) m0 m ->
  left c = fst (many (made c) (whole c) (snd (serially before m0))).
Proof.
  intros before c after m0 m [L _]. rewrite serially_app in L. simpl in L.
  destruct (many (made c) (whole c) (snd (serially before m0))) as [p m'].
  destruct (serially after m') as [ps m'']. simpl in *.
  rewrite map_app in L. simpl in L.
  apply app_split in L as [_ L]; [|now rewrite serially_length, map_length].
  congruence.
Qed.

(** The heart: one access of a running call is the next access of its serial run. *)
Lemma serial_access : forall before c after m0 m p' m',
  good m0 (before ++ c :: after) m -> at_ c = Running -> one (left c) m = (p', m') ->
  as_serial (before ++ advanced c p' :: after) m0 m'.
Proof.
  intros before c after m0 m p' m' [H T W S] R O.
  pose proof (serial_left _ _ _ _ _ S) as L.
  assert (Hc : honest (claims c) (left c)).
  { rewrite L. apply honest_many, H, In_middle. auto. }
  assert (A : forall x n, covered (claims c) n x -> forall k, n = WRITE \/ k = WRITE -> keeps_away k x after).
  { intros x n C k E d I. destruct (conflicts (claims c) (claims d)) eqn:K.
    - left. apply (T before c after eq_refl); [congruence | exact I | exact K].
    - right. intros C'. rewrite (covered_conflicts _ _ _ _ _ C C' E) in K. discriminate. }
  assert (Ha : all_honest after). { intros d I. apply H, In_middle. auto. }
  destruct S as [SL SM]. unfold as_serial. rewrite serially_app in *. simpl in *.
  destruct (many (made c) (whole c) (snd (serially before m0))) as [q n] eqn:Q. simpl in L. subst q.
  destruct (serially after n) as [ps n'] eqn:P. simpl in SL, SM.
  rewrite map_app in *. simpl in *.
  apply app_split in SL as [SB SA]; [|now rewrite serially_length, map_length].
  injection SA as SA.
  destruct (left c) as [r|l k|l v k] eqn:E; simpl in O; injection O as <- <-; simpl.
  - (* Return: no access *)
    rewrite P. simpl. split; [now rewrite SB, SA | exact SM].
  - (* Read: later calls did not write it *)
    pose proof (honest_read _ _ _ Hc) as C.
    assert (V : m l = n l).
    { rewrite <- (SM l). change n' with (snd (ps, n')). rewrite <- P.
      apply serially_keeps; [exact Ha | exact (A l READ C WRITE (or_intror eq_refl))]. }
    rewrite P. simpl. split; [rewrite SB, SA, V; reflexivity | exact SM].
  - (* Write: later calls neither read nor wrote it *)
    pose proof (honest_write _ _ _ _ Hc) as C.
    assert (B : but l n (set n l v)). { intros x Hx. now rewrite set_there. }
    destruct (serially_blind after n (set n l v) l Ha (A l WRITE C READ (or_introl eq_refl)) B) as [F G].
    rewrite P in F, G. destruct (serially after (set n l v)) as [qs o] eqn:Q'. simpl in *. subst qs.
    split; [now rewrite SB, SA|].
    intros x. destruct (loc_eq_dec x l) as [->|Nx].
    + rewrite set_here. change o with (snd (ps, o)). rewrite <- Q'.
      rewrite serially_keeps; [apply set_here | exact Ha | exact (A l WRITE C WRITE (or_introl eq_refl))].
    + rewrite set_there by exact Nx. rewrite <- (G x Nx). apply SM.
Qed.

Theorem good_step : forall limit m0 cs m cs' m',
  good m0 cs m -> step limit in_call_order (cs, m) (cs', m') -> good m0 cs' m'.
Proof.
  intros limit m0 cs m cs' m' G St.
  inversion St as [before c after n Wc Gr _ E1 E2 | before c after n p' n' Rc _ O E1 E2
                  | before c after n r Rc Lc E1 E2 | before c after n Nc E1 E2]; subst.
  - destruct G as [H T W S]. constructor.
    + eapply honest_replace; eauto.
    + apply (tickets_replace before c); [reflexivity | exact T | congruence | right; right; exact Gr].
    + eapply waits_replace; eauto. discriminate.
    + unfold as_serial in *. rewrite (serially_same_made before (started c) c); auto.
      rewrite map_app in *. exact S.
  - pose proof (serial_access _ _ _ _ _ _ _ G Rc O) as S'. destruct G as [H T W S]. constructor.
    + eapply honest_replace; eauto.
    + apply (tickets_replace before c); [reflexivity | exact T | congruence | right; left; right; exact Rc].
    + eapply waits_replace; eauto. discriminate.
    + exact S'.
  - destruct G as [H T W S]. constructor.
    + eapply honest_replace; eauto.
    + apply (tickets_replace before c); [reflexivity | exact T | reflexivity | right; left; right; exact Rc].
    + eapply waits_replace; eauto. discriminate.
    + unfold as_serial in *. rewrite (serially_same_made before (ended c) c); auto.
      rewrite map_app in *. exact S.
  - destruct G as [H T W S]. constructor.
    + eapply honest_replace; eauto.
    + apply (tickets_replace before c); [reflexivity | exact T | reflexivity |].
      destruct (made c) eqn:M; [left; split; [exact M | discriminate] | right; left; left; congruence].
    + eapply waits_replace; eauto. discriminate.
    + unfold as_serial in *. rewrite (serially_same_made before (ended c) c); auto.
      rewrite map_app in *. exact S.
Qed.

Lemma good_start : forall cs m, all_submitted cs -> all_honest cs -> good m cs m.
Proof.
  intros cs m Su H. constructor; [exact H| | |].
  - intros before c after -> _ d I _. destruct (Su d) as (M & _ & A); [apply In_middle; auto|].
    split; [exact M | congruence].
  - intros c I _. apply Su, I.
  - split.
    + revert m. induction cs as [|c cs IH]; intros m; [reflexivity|]. simpl.
      destruct (Su c (or_introl eq_refl)) as (M & L & _). rewrite M. simpl.
      specialize (IH (fun d I => Su d (or_intror I)) (fun d I => H d (or_intror I)) m).
      destruct (serially cs m) as [ps n]. simpl in *. congruence.
    + revert m. induction cs as [|c cs IH]; intros m l; [reflexivity|]. simpl.
      destruct (Su c (or_introl eq_refl)) as (M & _ & _). rewrite M. simpl.
      specialize (IH (fun d I => Su d (or_intror I)) (fun d I => H d (or_intror I)) m).
      destruct (serially cs m) as [ps n]. simpl in *. apply IH.
Qed.

Lemma good_run : forall limit m0 s t,
  run limit in_call_order s t -> good m0 (fst s) (snd s) -> good m0 (fst t) (snd t).
Proof.
  intros limit m0 s t R. induction R as [|s [cs m] [cs' m'] R IH St]; intros G; [exact G|].
  eapply good_step; [apply IH, G | exact St].
Qed.

(** * What the invariant says *)

(** Every run, whether it is complete or not, is the serial run of what its calls have done so far. *)
Theorem every_run_is_serial : forall limit cs m0 cs' m,
  all_submitted cs -> all_honest cs -> run limit in_call_order (cs, m0) (cs', m) ->
  fst (serially cs' m0) = map left cs' /\ equal (snd (serially cs' m0)) m.
Proof.
  intros limit cs m0 cs' m Su H R.
  exact (good_serial _ _ _ (good_run _ m0 _ _ R (good_start _ _ Su H))).
Qed.

(** The calls that a run is about stay those that were submitted. *)
Definition identity (c : call) : list claim * program := (claims c, whole c).

Lemma step_identity : forall limit granted s t,
  step limit granted s t -> map identity (fst s) = map identity (fst t).
Proof. intros limit granted s t St; inversion St; subst; simpl; now rewrite !map_app. Qed.

Lemma run_identity : forall limit granted s t,
  run limit granted s t -> map identity (fst s) = map identity (fst t).
Proof. intros limit granted s t R; induction R; [reflexivity|]. rewrite IHR. eapply step_identity; eauto. Qed.

(** The result of a call: what it returned, or nothing if it was cut off before it returned. *)
Definition answer (c : call) : option nat := match left c with Return r => Some r | _ => None end.

Definition uncut (cs : list call) : Prop := forall c, In c cs -> answer c <> None.

Lemma serial_run_of_answers : forall cs m,
  fst (serially cs m) = map left cs -> uncut cs ->
  exists rs, serial_run cs m rs (snd (serially cs m)) /\ map answer cs = map Some rs.
Proof.
  induction cs as [|c cs IH]; intros m L U; [exists []; split; [constructor | reflexivity]|]. simpl in *.
  pose proof (alone_many (made c) (whole c) m) as A.
  destruct (many (made c) (whole c) m) as [p n]. simpl in A.
  destruct (serially cs n) as [ps o] eqn:S. simpl in L. injection L as -> L.
  specialize (IH n). rewrite S in IH. simpl in IH.
  destruct (IH L (fun d I => U d (or_intror I))) as (rs & R & E).
  pose proof (U c (or_introl eq_refl)) as Uc. unfold answer in *.
  destruct (left c) as [r|l k|l v k]; [|congruence|congruence].
  exists (r :: rs). split; [|simpl; congruence]. simpl.
  econstructor; [|exact R]. apply A. constructor.
Qed.

Lemma serial_run_identity : forall cs ds m rs n,
  map identity cs = map identity ds -> serial_run cs m rs n -> serial_run ds m rs n.
Proof.
  intros cs ds m rs n E R. revert ds E. induction R; intros [|d ds] E; try discriminate; [constructor|].
  simpl in E. injection E as _ W E. econstructor; [rewrite <- W; eassumption | auto].
Qed.

(** Theorem (a).  A run in which every call returned ends in the memory and the results of the serial run.  So its calls
    have a serial run, also where there are programs that would go on for ever after they had read something else. *)
Theorem complete_run_is_serial : forall limit cs m0 cs' m,
  all_submitted cs -> all_honest cs ->
  run limit in_call_order (cs, m0) (cs', m) -> uncut cs' ->
  exists results serial, serial_run cs m0 results serial /\ map answer cs' = map Some results /\ equal serial m.
Proof.
  intros limit cs m0 cs' m Su H R U.
  destruct (every_run_is_serial _ _ _ _ _ Su H R) as [L M].
  pose proof (run_identity _ _ _ _ R) as I. simpl in I.
  destruct (serial_run_of_answers _ _ L U) as (rs & S & A).
  exists rs, (snd (serially cs' m0)). split; [|split; [exact A | exact M]].
  eapply serial_run_identity; [symmetry; exact I | exact S].
Qed.

(** A complete run in which no call was cut: each call has its answer. *)
Definition returned (c : call) : Prop := at_ c = Ended /\ exists r, left c = Return r.

(** The part of a program that [n] accesses make, in the memory that it meets in its serial run. *)
Fixpoint first_part (n : nat) (p : program) : program :=
  match n, p with
  | 0, _ => Return 0
  | S _, Return r => Return r
  | S n', Read l next => Read l (fun v => first_part n' (next v))
  | S n', Write l v next => Write l v (first_part n' next)
  end.

Lemma many_first : forall n p m, many (S n) p m = (let (p', m') := one p m in many n p' m').
Proof.
  induction n; intros p m; simpl.
  - destruct (one p m); reflexivity.
  - specialize (IHn p m). simpl in IHn. rewrite IHn. destruct (one p m). reflexivity.
Qed.

Lemma many_return : forall n r m, many n (Return r) m = (Return r, m).
Proof. induction n; intros r m; simpl; [reflexivity|]. now rewrite IHn. Qed.

(** What a cut call has done is all of a shorter program, and that one ends. *)
Lemma first_part_alone : forall n p m, exists r, alone (first_part n p) m r (snd (many n p m)).
Proof.
  induction n; intros p m; [exists 0; constructor|]. rewrite many_first.
  destruct p as [r|l k|l v k]; simpl.
  - exists r. rewrite many_return. constructor.
  - destruct (IHn (k (m l)) m) as [r A]. exists r. now constructor.
  - destruct (IHn k (set m l v)) as [r A]. exists r. now constructor.
Qed.

Definition as_far_as_it_came (c : call) : call := submitted (claims c) (first_part (made c) (whole c)).

(** Theorem (d).  A call that ends early counts as the part of it that ran: the rest of the batch ends as if that part
    had been all of the call. *)
Theorem cut_calls_change_nothing_else : forall limit cs m0 cs' m,
  all_submitted cs -> all_honest cs -> run limit in_call_order (cs, m0) (cs', m) ->
  exists results serial, serial_run (map as_far_as_it_came cs') m0 results serial /\ equal serial m.
Proof.
  intros limit cs m0 cs' m Su H R.
  destruct (every_run_is_serial _ _ _ _ _ Su H R) as [_ M].
  enough (E : exists rs, serial_run (map as_far_as_it_came cs') m0 rs (snd (serially cs' m0))).
  { destruct E as [rs S]. eauto. }
  clear. revert m0. induction cs' as [|c cs IH]; intros m; [exists []; constructor|]. simpl.
  destruct (first_part_alone (made c) (whole c) m) as [r A].
  destruct (many (made c) (whole c) m) as [p n]. simpl in A. destruct (IH n) as [rs S].
  destruct (serially cs n) as [ps o]. simpl in *. exists (r :: rs). econstructor; [exact A | exact S].
Qed.

(** ... and one that was cut before it began counts as no call at all. *)
Theorem unbegun_calls_count_as_none : forall limit before c after m0 cs' m,
  all_submitted (before ++ c :: after) -> all_honest (before ++ c :: after) ->
  run limit in_call_order (before ++ c :: after, m0) (cs', m) ->
  forall b c' a, cs' = b ++ c' :: a -> made c' = 0 ->
  fst (serially (b ++ a) m0) = map left (b ++ a) /\ equal (snd (serially (b ++ a) m0)) m.
Proof.
  intros limit before c after m0 cs' m Su H R b c' a -> Z.
  destruct (every_run_is_serial _ _ _ _ _ Su H R) as [L M].
  rewrite serially_app in *. simpl in *. rewrite Z in *. simpl in *.
  destruct (serially a (snd (serially b m0))) as [ps n]. simpl in *.
  rewrite !map_app in *. simpl in L.
  apply app_split in L as [L1 L2]; [|now rewrite serially_length, map_length].
  injection L2 as _ L2. split; [congruence | exact M].
Qed.

(** * Nothing waits for ever *)

Lemma running_none : forall cs, (forall c, In c cs -> at_ c <> Running) -> running cs = 0.
Proof.
  intros cs H. unfold running. induction cs as [|c cs IH]; [reflexivity|]. simpl.
  assert (N : is_running c = false).
  { unfold is_running. destruct (at_ c) eqn:E; try reflexivity. exfalso. apply (H c (or_introl eq_refl)), E. }
  rewrite N. apply IH. intros d I. apply H. right. exact I.
Qed.

Definition is_ended (c : call) : bool := match at_ c with Ended => true | _ => false end.

Lemma is_ended_true : forall c, is_ended c = true <-> at_ c = Ended.
Proof. intros c; unfold is_ended; destruct (at_ c); split; congruence. Qed.

Lemma first_unended : forall cs, ~ complete cs ->
  exists before c after, cs = before ++ c :: after /\ complete before /\ at_ c <> Ended.
Proof.
  induction cs as [|c cs IH]; intros N.
  - exfalso. apply N. intros c [].
  - destruct (is_ended c) eqn:E.
    + apply is_ended_true in E. destruct IH as (b & d & a & -> & C & D).
      { intros C. apply N. intros d [<-|I]; auto. }
      exists (c :: b), d, a. split; [reflexivity|]. split; [|exact D]. intros x [<-|I]; auto.
    + exists [], c, cs. split; [reflexivity|]. split; [intros d []|].
      intros E'. apply is_ended_true in E'. congruence.
Qed.

Lemma running_one : forall cs, {c | In c cs /\ at_ c = Running} + {forall c, In c cs -> at_ c <> Running}.
Proof.
  induction cs as [|c cs [[d [I R]]|N]].
  - right. intros c [].
  - left. exists d. split; [right; exact I | exact R].
  - destruct (at_ c) eqn:E.
    + right. intros d [<-|I]; [congruence | auto].
    + left. exists c. split; [left; reflexivity | exact E].
    + right. intros d [<-|I]; [congruence | auto].
Qed.

(** What a batch does by itself: every step but a cancel, which comes from outside. *)
Definition goes_on (limit : nat) (granted : gate) (cs : list call) (m : memory) : Prop :=
  exists cs' m', step limit granted (cs, m) (cs', m') /\
  (exists before c c' after, cs = before ++ c :: after /\ cs' = before ++ c' :: after /\
    ((at_ c = Waiting /\ at_ c' = Running) \/ (at_ c = Running /\ (at_ c' = Running \/ exists r, left c = Return r)))).

Lemma a_running_call_can_go_on : forall limit granted cs m c,
  In c cs -> at_ c = Running -> goes_on limit granted cs m.
Proof.
  intros limit granted cs m c I R. apply in_split in I as (b & a & ->).
  destruct (left c) as [r|l k|l v k] eqn:E.
  - exists (b ++ ended c :: a), m. split; [eapply Finish; eauto|].
    exists b, c, (ended c), a. repeat split; auto. right. split; [exact R | right; eauto].
  - exists (b ++ advanced c (k (m l)) :: a), m. split.
    + apply Access; [exact R | intros r; congruence | now rewrite E].
    + exists b, c, (advanced c (k (m l))), a. repeat split; auto.
  - exists (b ++ advanced c k :: a), (set m l v). split.
    + apply Access; [exact R | intros r; congruence | now rewrite E].
    + exists b, c, (advanced c k), a. repeat split; auto.
Qed.

(** Whatever grants: where all calls before one have ended, and it is granted, some call can go on. *)
Lemma the_first_can_go_on : forall limit (granted : gate) b c a m,
  limit > 0 -> complete b -> at_ c <> Ended -> granted b c a -> goes_on limit granted (b ++ c :: a) m.
Proof.
  intros limit granted b c a m P C E G.
  destruct (running_one (b ++ c :: a)) as [[d [I R]]|None].
  - eapply a_running_call_can_go_on; eauto.
  - assert (W : at_ c = Waiting).
    { destruct (at_ c) eqn:A; [reflexivity| |congruence].
      exfalso. apply (None c); [apply In_middle; auto | exact A]. }
    exists (b ++ started c :: a), m. split.
    + apply Start; [exact W | exact G | rewrite (running_none _ None); exact P].
    + exists b, c, (started c), a. repeat split; auto.
Qed.

(** Theorem (b).  As long as a call is unfinished some call can go on, if there is a slot at all. *)
Theorem some_call_can_go_on : forall limit cs m,
  limit > 0 -> ~ complete cs -> goes_on limit in_call_order cs m.
Proof.
  intros limit cs m P N. destruct (first_unended cs N) as (b & c & a & -> & C & E).
  apply the_first_can_go_on; auto. intros e I _. apply C, I.
Qed.

(** No run is infinite: a call only ever waits, then runs through a program that ends, then has ended. *)
Inductive part_of : program -> program -> Prop :=
| Next_of_read : forall l k v, part_of (k v) (Read l k)
| Next_of_write : forall l v k, part_of k (Write l v k).

(** A program ends when it does not go on for ever, whatever it reads. *)
Definition ends (p : program) : Prop := Acc part_of p.

Definition later_than (s t : list call * memory) : Prop := exists limit granted, step limit granted t s.

(** A call that has changed: it started, made an access, or ended. *)
Inductive call_moves : call -> call -> Prop :=
| Moves_start : forall c, at_ c = Waiting -> call_moves (started c) c
| Moves_access : forall c p, at_ c = Running -> part_of p (left c) -> call_moves (advanced c p) c
| Moves_end : forall c, at_ c <> Ended -> call_moves (ended c) c.

Lemma ended_stays : forall c, at_ c = Ended -> Acc call_moves c.
Proof. intros c E. constructor. intros d M. inversion M; subst; simpl in *; congruence. Qed.

Lemma running_ends : forall p, ends p -> forall c, left c = p -> at_ c = Running -> Acc call_moves c.
Proof.
  intros p E. induction E as [p _ IH].
  intros c L R. constructor. intros d M. inversion M; subst; try congruence.
  - eapply IH; [eassumption | reflexivity | reflexivity].
  - apply ended_stays. reflexivity.
Qed.

Lemma call_moves_ends : forall c, ends (left c) -> Acc call_moves c.
Proof.
  intros c L. destruct (at_ c) eqn:E.
  - constructor. intros d M. inversion M; subst; try congruence.
    + eapply running_ends; [exact L | reflexivity | reflexivity].
    + apply ended_stays. reflexivity.
  - eapply running_ends; [exact L | reflexivity | exact E].
  - now apply ended_stays.
Qed.

(** One call of a list moves, the others stay. *)
Inductive one_moves : list call -> list call -> Prop :=
| Here : forall c d cs, call_moves c d -> one_moves (c :: cs) (d :: cs)
| There : forall c cs ds, one_moves cs ds -> one_moves (c :: cs) (c :: ds).

Lemma one_moves_ends : forall cs, (forall c, In c cs -> ends (left c)) -> Acc one_moves cs.
Proof.
  induction cs as [|c cs IH]; intros E; [constructor; intros d M; inversion M|].
  pose proof (call_moves_ends c (E c (or_introl eq_refl))) as A.
  specialize (IH (fun d I => E d (or_intror I))). clear E. revert c A. induction IH as [cs _ IHcs].
  intros c A. induction A as [c Ac IHc].
  constructor. intros ds M. inversion M; subst.
  - now apply IHc.
  - apply IHcs; [assumption | constructor; assumption].
Qed.

Lemma moves_keep_ends : forall ds cs, one_moves ds cs ->
  (forall c, In c cs -> ends (left c)) -> forall d, In d ds -> ends (left d).
Proof.
  intros ds cs M. induction M as [d c cs M|c ds cs M IH]; intros E x [<-|I].
  - pose proof (E c (or_introl eq_refl)) as C. inversion M; subst; simpl; auto. eapply Acc_inv; eauto.
  - apply E. right. exact I.
  - apply E. left. reflexivity.
  - apply IH; [|exact I]. intros c' I'. apply E. right. exact I'.
Qed.

Lemma one_moves_middle : forall before c d after,
  call_moves c d -> one_moves (before ++ c :: after) (before ++ d :: after).
Proof. induction before; intros; simpl; constructor; auto. Qed.

(** ... if each program ends.  The claims, the tickets and the limit add no wait without end of their own. *)
Theorem every_run_ends : forall cs m, (forall c, In c cs -> ends (left c)) -> Acc later_than (cs, m).
Proof.
  intros cs m E. revert m. induction (one_moves_ends cs E) as [cs _ IH].
  intros m. constructor. intros [ds n] (limit & granted & St).
  assert (M : one_moves ds cs).
  { inversion St as [b c a k W _ _ E1 E2 | b c a k p k' W N O E1 E2 | b c a k r W _ E1 E2 | b c a k W E1 E2];
      subst; apply one_moves_middle.
    - now constructor.
    - constructor; [assumption|]. destruct (left c) as [r|l q|l v q]; simpl in O.
      + exfalso. eapply N. reflexivity.
      + injection O as <- <-. constructor.
      + injection O as <- <-. constructor.
    - constructor. congruence.
    - now constructor. }
  apply IH; [exact M|]. apply (moves_keep_ends _ _ M E).
Qed.

(** * Places and rates *)

Lemma stricter_run : forall limit (strict lax : gate),
  (forall earlier c later, strict earlier c later -> lax earlier c later) ->
  forall s t, run limit strict s t -> run limit lax s t.
Proof.
  intros limit strict lax L s t R. induction R as [|s t u R IH St]; [constructor|].
  apply (More _ _ _ _ _ IH). inversion St; subst.
  - apply Start; auto.
  - apply Access; assumption.
  - eapply Finish; eassumption.
  - apply Cut; assumption.
Qed.

Lemma fewer_filtered : forall {A} (f g : A -> bool) xs,
  (forall x, f x = true -> g x = true) -> length (filter f xs) <= length (filter g xs).
Proof.
  intros A f g xs I. induction xs as [|x xs IH]; [constructor|]. simpl.
  destruct (f x) eqn:F; [rewrite (I x F); simpl; lia|]. destruct (g x); simpl; lia.
Qed.

Section Places.
(** Whether a call, as it was submitted, takes a place of the resource. *)
Variable takes_place : loc -> list claim * program -> bool.
Definition takes (r : loc) (c : call) : bool := takes_place r (identity c).

(** How many places a resource has. *)
Variable places : loc -> nat.

Definition before_it (r : loc) (c : call) : bool := takes r c && negb (is_ended c).
Definition left_before (r : loc) (cs : list call) : nat := length (filter (before_it r) cs).
Definition has_place (r : loc) (c : call) : bool := takes r c && is_running c.
Definition taken (r : loc) (cs : list call) : nat := length (filter (has_place r) cs).

(** Places are granted in call order: a call waits while as many earlier calls that take one are left as there are. *)
Definition with_places (earlier : list call) (c : call) (later : list call) : Prop :=
  in_call_order earlier c later /\ forall r, takes r c = true -> left_before r earlier < places r.

Theorem runs_with_places_are_serial : forall limit cs m0 cs' m,
  all_submitted cs -> all_honest cs -> run limit with_places (cs, m0) (cs', m) ->
  fst (serially cs' m0) = map left cs' /\ equal (snd (serially cs' m0)) m.
Proof.
  intros limit cs m0 cs' m Su H R. apply (every_run_is_serial limit cs); [assumption|assumption|].
  eapply stricter_run; [|exact R]. intros earlier c later [G _]. exact G.
Qed.

Lemma none_left_before : forall r cs, complete cs -> left_before r cs = 0.
Proof.
  intros r cs C. unfold left_before. induction cs as [|c cs IH]; [reflexivity|]. simpl.
  assert (E : is_ended c = true) by (apply is_ended_true, C; left; reflexivity).
  unfold before_it at 1. rewrite E, andb_false_r. apply IH. intros d I. apply C. right. exact I.
Qed.

(** No deadlock comes of places: the first call that has not ended has none before it that is left. *)
Theorem some_call_can_go_on_with_places : forall limit cs m,
  limit > 0 -> (forall r, places r > 0) -> ~ complete cs -> goes_on limit with_places cs m.
Proof.
  intros limit cs m P Q N. destruct (first_unended cs N) as (b & c & a & -> & C & E).
  apply the_first_can_go_on; auto. split.
  - intros e I _. apply C, I.
  - intros r _. rewrite (none_left_before _ _ C). apply Q.
Qed.

Definition within_places (cs : list call) : Prop := forall r before c after,
  cs = before ++ c :: after -> at_ c = Running -> takes r c = true -> left_before r before < places r.

Lemma within_places_replace : forall before x y after,
  identity x = identity y -> (is_ended x = true -> is_ended y = true) ->
  (forall r, at_ y = Running -> takes r y = true -> left_before r before < places r) ->
  within_places (before ++ x :: after) -> within_places (before ++ y :: after).
Proof.
  intros before x y after Id En Own W r b c a E Rn T.
  apply split_two in E as [(-> & -> & ->)|[(e & -> & ->)|(e & -> & ->)]].
  - exact (Own r Rn T).
  - apply (Nat.le_lt_trans _ (left_before r (before ++ x :: e))).
    + unfold left_before. rewrite !filter_app, !app_length. apply Nat.add_le_mono_l. simpl.
      assert (M : before_it r y = true -> before_it r x = true).
      { unfold before_it, takes. rewrite <- Id. destruct (is_ended x); [rewrite (En eq_refl)|]; auto.
        destruct (takes_place r (identity x)), (is_ended y); auto. }
      destruct (before_it r y); [rewrite (M eq_refl); reflexivity|]. destruct (before_it r x); simpl; lia.
    + apply (W r (before ++ x :: e) c a); [|exact Rn | exact T]. now rewrite <- app_assoc.
  - apply (W r b c (e ++ x :: after)); [|exact Rn | exact T]. now rewrite <- app_assoc.
Qed.

Lemma within_places_step : forall limit s t,
  step limit with_places s t -> within_places (fst s) -> within_places (fst t).
Proof.
  intros limit s t St W.
  inversion St as [b c a k Wt [_ G] L E1 E2 | b c a k p k' Rn N O E1 E2 | b c a k r Rn Re E1 E2 | b c a k Ne E1 E2];
    subst; simpl in *; apply (within_places_replace b c).
  - reflexivity.
  - unfold is_ended. now rewrite Wt.
  - intros r _ T. apply G. exact T.
  - exact W.
  - reflexivity.
  - unfold is_ended. now rewrite Rn.
  - intros r _ T. apply (W r b c a eq_refl Rn). exact T.
  - exact W.
  - reflexivity.
  - reflexivity.
  - discriminate.
  - exact W.
  - reflexivity.
  - reflexivity.
  - discriminate.
  - exact W.
Qed.

Lemma last_with_place : forall r cs, taken r cs = 0 \/
  exists before c after, cs = before ++ c :: after /\ has_place r c = true /\ taken r cs = S (taken r before).
Proof.
  intros r cs. unfold taken. induction cs as [|x cs IH] using rev_ind; [left; reflexivity|].
  rewrite filter_app, app_length. simpl. destruct (has_place r x) eqn:H; simpl.
  - right. exists cs, x, []. repeat split; [exact H | lia].
  - rewrite Nat.add_0_r. destruct IH as [Z|(b & c & a & -> & H' & E)]; [left; exact Z|].
    right. exists b, c, (a ++ [x]). repeat split; [now rewrite <- app_assoc | exact H' | exact E].
Qed.

(** In no run do more calls that take a place of a resource run at once than it has places. *)
Theorem places_hold : forall limit cs m0 cs' m r,
  all_submitted cs -> run limit with_places (cs, m0) (cs', m) -> taken r cs' <= places r.
Proof.
  intros limit cs m0 cs' m r Su R.
  assert (W : within_places cs').
  { assert (W0 : within_places cs).
    { intros q b c a -> Rn. destruct (Su c) as (_ & _ & A); [apply In_middle; auto|]. congruence. }
    change cs' with (fst (cs', m)). change cs with (fst (cs, m0)) in W0.
    clear Su. induction R as [|s t u R IH St]; [exact W0|]. eapply within_places_step; eauto. }
  destruct (last_with_place r cs') as [->|(b & c & a & -> & H & ->)]; [lia|].
  unfold has_place in H. apply andb_true_iff in H as [T Rn].
  assert (A : at_ c = Running) by (unfold is_running in Rn; destruct (at_ c); congruence).
  pose proof (W r b c a eq_refl A T) as L.
  assert (taken r b <= left_before r b); [|lia].
  apply fewer_filtered. intros d. unfold has_place, before_it, is_running, is_ended.
  destruct (takes r d), (at_ d); simpl; congruence.
Qed.

(** A rate lets [n] calls start in [w] units of time: the n-th start before is that old.  The newest start is the first
    of a log. *)
Definition opens (n w : nat) (log : list nat) (now : nat) : Prop :=
  forall t, nth_error log (pred n) = Some t -> t + w <= now.

(** A log of starts, each at an instant at which the rate was open. *)
Inductive kept (n w : nat) : list nat -> Prop :=
| Kept_none : kept n w []
| Kept_start : forall t log, kept n w log -> opens n w log t -> kept n w (t :: log).

(** So in no [w] units of time do more than [n] calls start: between a start and the n-th after it there are as many. *)
Theorem rates_hold : forall n w log i t u,
  n > 0 -> kept n w log -> nth_error log i = Some t -> nth_error log (i + n) = Some u -> u + w <= t.
Proof.
  intros n w log i t u P K. revert i. induction K as [|s log K IH O]; intros i T U; [destruct i; discriminate|].
  destruct i as [|i].
  - injection T as ->. destruct n as [|n]; [lia|]. apply O. exact U.
  - exact (IH i T U).
Qed.

(** What a call has to wait for besides: the rates that it claims, each with its log. *)
Variable rates : call -> list (nat * nat * list nat).

Definition in_time (now : nat) (earlier : list call) (c : call) (later : list call) : Prop :=
  with_places earlier c later /\ forall n w log, In (n, w, log) (rates c) -> opens n w log now.

Lemma rates_open : forall rs, exists now, forall later, now <= later ->
  forall n w log, In (n, w, log) rs -> opens n w log later.
Proof.
  induction rs as [|[[n w] log] rs [now IH]]; [exists 0; intros later _ n w log []|].
  destruct (nth_error log (pred n)) as [t|] eqn:E.
  - exists (max now (t + w)). intros later L n' w' log' [[= <- <- <-]|I].
    + intros t' E'. rewrite E in E'. injection E' as <-. lia.
    + apply (IH later); [lia | exact I].
  - exists now. intros later L n' w' log' [[= <- <- <-]|I].
    + intros t' E'. congruence.
    + exact (IH later L _ _ _ I).
Qed.

(** No deadlock comes of rates: what a call waits for is an instant, and time comes by itself. *)
Theorem some_call_can_go_on_in_time : forall limit cs m,
  limit > 0 -> (forall r, places r > 0) -> ~ complete cs ->
  exists now, forall later, now <= later -> goes_on limit (in_time later) cs m.
Proof.
  intros limit cs m P Q N. destruct (first_unended cs N) as (b & c & a & -> & C & E).
  destruct (rates_open (rates c)) as [now O]. exists now. intros later L.
  apply the_first_can_go_on; auto. split; [split|].
  - intros e I _. apply C, I.
  - intros r _. rewrite (none_left_before _ _ C). apply Q.
  - exact (O later L).
Qed.
End Places.

(** * The state after a lane *)

(** The state that calls share: values by key.  A modifier gives the state after it, or raises ([None]). *)
Definition state := nat -> nat.
Definition modifier := state -> option state.

Definition apply (s : state) (m : modifier) : state := match m s with Some s' => s' | None => s end.
Definition apply_all (ms : list modifier) (s : state) : state := fold_left apply ms s.

(** A call of a lane that has ended: its index in the batch and what it returned.  One that was cancelled, or that
    raised, is not among them. *)
Definition end_ : Type := nat * list modifier.

(** The runtime keeps the ends in the order in which they came, sorts them by index, and applies them. *)
Fixpoint insert (e : end_) (es : list end_) : list end_ :=
  match es with
  | [] => [e]
  | d :: rest => if fst e <=? fst d then e :: es else d :: insert e rest
  end.

Definition sort (es : list end_) : list end_ := fold_right insert [] es.

Definition merge (es : list end_) (s : state) : state :=
  fold_left (fun s e => apply_all (snd e) s) (sort es) s.

Lemma insert_perm : forall e es, Permutation (e :: es) (insert e es).
Proof.
  induction es as [|d es IH]; [reflexivity|]. simpl.
  destruct (fst e <=? fst d); [reflexivity|].
  rewrite perm_swap. now constructor.
Qed.

Lemma sort_perm : forall es, Permutation es (sort es).
Proof.
  induction es as [|e es IH]; [reflexivity|]. simpl. rewrite IH at 1. apply insert_perm.
Qed.

Definition below (d e : end_) : Prop := fst d <= fst e.

Lemma insert_sorted : forall e es, StronglySorted below es -> StronglySorted below (insert e es).
Proof.
  induction es as [|d es IH]; intros S; simpl; [repeat constructor|].
  inversion S as [|x xs Sx F]; subst. destruct (fst e <=? fst d) eqn:L.
  - apply Nat.leb_le in L. constructor; [exact S|]. constructor; [exact L|].
    eapply Forall_impl; [|exact F]. unfold below. intros; lia.
  - apply Nat.leb_gt in L. constructor; [apply IH, Sx|].
    apply Forall_forall. intros x I. apply (Permutation_in x (Permutation_sym (insert_perm e es))) in I.
    destruct I as [<-|I]; [unfold below; lia|]. rewrite Forall_forall in F. apply F, I.
Qed.

Lemma sort_sorted : forall es, StronglySorted below (sort es).
Proof. induction es; simpl; [constructor | apply insert_sorted; assumption]. Qed.

(** Sorted lists with the same entries and no index twice are the same list. *)
Lemma sorted_unique : forall es ds,
  StronglySorted below es -> StronglySorted below ds -> Permutation es ds -> NoDup (map fst es) -> es = ds.
Proof.
  induction es as [|e es IH]; intros ds Se Sd P N.
  - apply Permutation_nil in P. now subst.
  - destruct ds as [|d ds]; [apply Permutation_sym, Permutation_nil in P; discriminate|].
    assert (E : e = d).
    { assert (Ie : In e (d :: ds)) by (eapply Permutation_in; [exact P | left; reflexivity]).
      assert (Id : In d (e :: es)) by (eapply Permutation_in; [symmetry; exact P | left; reflexivity]).
      destruct Ie as [<-|Ie]; [reflexivity|]. destruct Id as [->|Id]; [reflexivity|].
      inversion Se as [|? ? _ Fe]; subst. inversion Sd as [|? ? _ Fd]; subst.
      rewrite Forall_forall in Fe, Fd. specialize (Fe d Id). specialize (Fd e Ie). unfold below in *.
      simpl in N. inversion N as [|? ? Ni _]; subst. exfalso. apply Ni.
      replace (fst e) with (fst d) by lia. now apply in_map. }
    subst d. f_equal. inversion Se; inversion Sd; subst. apply IH; auto.
    + eapply Permutation_cons_inv; exact P.
    + now inversion N.
Qed.

(** Theorem (c), first part.  The order in which calls ended does not matter. *)
Theorem merge_ignores_the_order_of_ends : forall es ds s,
  Permutation es ds -> NoDup (map fst es) -> merge es s = merge ds s.
Proof.
  intros es ds s P N. unfold merge. replace (sort ds) with (sort es); [reflexivity|].
  apply sorted_unique.
  - apply sort_sorted.
  - apply sort_sorted.
  - rewrite <- (sort_perm es), <- (sort_perm ds). exact P.
  - eapply Permutation_NoDup; [|exact N]. apply Permutation_map, sort_perm.
Qed.

(** A lane in call order: for each call the modifiers that it returned, or nothing when it did not return. *)
Definition lane := list (option (list modifier)).

Fixpoint in_order (calls : lane) (s : state) : state :=
  match calls with
  | [] => s
  | Some ms :: rest => in_order rest (apply_all ms s)
  | None :: rest => in_order rest s
  end.

Fixpoint ends_from (i : nat) (calls : lane) : list end_ :=
  match calls with
  | [] => []
  | Some ms :: rest => (i, ms) :: ends_from (S i) rest
  | None :: rest => ends_from (S i) rest
  end.

Lemma ends_above : forall calls i e, In e (ends_from i calls) -> i <= fst e.
Proof.
  induction calls as [|[ms|] calls IH]; intros i e I; simpl in I; [contradiction| |].
  - destruct I as [<-|I]; [reflexivity|]. apply IH in I. lia.
  - apply IH in I. lia.
Qed.

Lemma ends_sorted : forall calls i, StronglySorted below (ends_from i calls).
Proof.
  induction calls as [|[ms|] calls IH]; intros i; simpl; [constructor| |apply IH].
  constructor; [apply IH|]. apply Forall_forall. intros e I. apply ends_above in I. unfold below. simpl. lia.
Qed.

Lemma ends_distinct : forall calls i, NoDup (map fst (ends_from i calls)).
Proof.
  induction calls as [|[ms|] calls IH]; intros i; simpl; [constructor| |apply IH].
  constructor; [|apply IH]. intros I. apply in_map_iff in I as (e & E & I). apply ends_above in I. lia.
Qed.

(** Theorem (c), second part.  Whatever order the ends came in, the state is that of the calls in call order, and ... *)
Theorem merge_is_in_call_order : forall calls ends s,
  Permutation ends (ends_from 0 calls) -> merge ends s = in_order calls s.
Proof.
  intros calls ends s P.
  rewrite (merge_ignores_the_order_of_ends _ _ s P);
    [|eapply Permutation_NoDup; [symmetry; apply Permutation_map, P | apply ends_distinct]].
  unfold merge. replace (sort (ends_from 0 calls)) with (ends_from 0 calls).
  - generalize 0 as i. revert s. clear. induction calls as [|[ms|] calls IH]; intros s i; simpl; auto.
  - apply sorted_unique; [apply ends_sorted | apply sort_sorted | apply sort_perm | apply ends_distinct].
Qed.

(** ... calls that were cancelled count as none. *)
Theorem merge_ignores_cancelled_calls : forall before after ends s,
  Permutation ends (ends_from 0 (before ++ None :: after)) -> merge ends s = in_order (before ++ after) s.
Proof.
  intros before after ends s P. rewrite (merge_is_in_call_order _ _ s P). clear.
  revert s. induction before as [|[ms|] before IH]; intros s; simpl; auto.
Qed.

(** What a call returns depends on the state that it sees. *)
Definition tool := state -> list modifier.

Definition reads_only (keys : nat -> Prop) (t : tool) : Prop :=
  forall s r, (forall k, keys k -> s k = r k) -> t s = t r.

Definition changes_only (keys : nat -> Prop) (t : tool) : Prop :=
  forall seen s k, ~ keys k -> apply_all (t seen) s k = s k.

(** All calls of a lane see the state as of its start. *)
Definition lane_run (tools : list tool) (s : state) : state := in_order (map (fun t => Some (t s)) tools) s.

(** In a serial run each call sees what the one before it left. *)
Fixpoint serial_state (tools : list tool) (s : state) : state :=
  match tools with [] => s | t :: rest => serial_state rest (apply_all (t s) s) end.

(** No call reads from its snapshot a key that an earlier call of the lane changes. *)
Inductive apart : list (tool * (nat -> Prop) * (nat -> Prop)) -> Prop :=
| Apart_nil : apart []
| Apart_cons : forall t reads changes rest,
    reads_only reads t -> changes_only changes t ->
    (forall u r c, In (u, r, c) rest -> forall k, changes k -> ~ r k) ->
    apart rest -> apart ((t, reads, changes) :: rest).

Definition tool_of (x : tool * (nat -> Prop) * (nat -> Prop)) : tool := fst (fst x).

(** Theorem (c), last part.  Then the lane ends like the serial run. *)
Theorem merge_is_serial : forall calls s,
  apart calls -> lane_run (map tool_of calls) s = serial_state (map tool_of calls) s.
Proof.
  intros calls s A. unfold lane_run.
  enough (G : forall now, (forall t r c, In (t, r, c) calls -> forall k, r k -> s k = now k) ->
    in_order (map (fun t => Some (t s)) (map tool_of calls)) now = serial_state (map tool_of calls) now).
  { apply G. reflexivity. }
  induction A as [|t reads changes rest R C D A IH]; intros now E; [reflexivity|].
  cbn [map in_order serial_state]. change (tool_of (t, reads, changes)) with t.
  rewrite (R s now) by (intros k; apply (E t reads changes); left; reflexivity).
  apply IH. intros u r c I k K. rewrite (E u r c (or_intror I) k K).
  symmetry. apply C. intros Ck. exact (D u r c I k Ck K).
Qed.

(** * Results *)

(** A reader is handed one result after the other, each as soon as it and all before it are there.  Of [n] calls those in
    [es] have ended, in any order; [handed] is what the reader has by then. *)
Fixpoint cursor (calls next : nat) (es : list nat) : nat :=
  match calls with
  | 0 => next
  | S rest => if in_dec Nat.eq_dec next es then cursor rest (S next) es else next
  end.

Definition handed (n : nat) (es : list nat) : list nat := seq 0 (cursor n 0 es).

Lemma cursor_grows : forall calls next es, next <= cursor calls next es.
Proof.
  induction calls as [|calls IH]; simpl; intros next es; [lia|].
  destruct (in_dec Nat.eq_dec next es); [|lia]. specialize (IH (S next) es). lia.
Qed.

Lemma cursor_passes_ends : forall calls next es i, next <= i < cursor calls next es -> In i es.
Proof.
  induction calls as [|calls IH]; simpl; intros next es i H; [lia|].
  destruct (in_dec Nat.eq_dec next es) as [E|]; [|lia].
  destruct (Nat.eq_dec i next) as [->|D]; [assumption|]. apply (IH (S next)). lia.
Qed.

Lemma cursor_passes_all : forall calls next es,
  (forall i, next <= i < next + calls -> In i es) -> cursor calls next es = next + calls.
Proof.
  induction calls as [|calls IH]; simpl; intros next es H; [lia|].
  destruct (in_dec Nat.eq_dec next es) as [E|N].
  - rewrite IH; [lia|]. intros i B. apply H. lia.
  - exfalso. apply N, H. lia.
Qed.

Lemma cursor_is_not_taken_back : forall calls next e es, cursor calls next es <= cursor calls next (e :: es).
Proof.
  induction calls as [|calls IH]; intros next e es; simpl; [lia|].
  destruct (in_dec Nat.eq_dec next es) as [E|N].
  - destruct (Nat.eq_dec e next); [apply IH|].
    destruct (in_dec Nat.eq_dec next es); [apply IH|contradiction].
  - destruct (Nat.eq_dec e next); [|destruct (in_dec Nat.eq_dec next es); [contradiction|lia]].
    pose proof (cursor_grows calls (S next) (e :: es)). lia.
Qed.

(** What the reader has is a prefix of the calls, in call order, and each of them has ended. *)
Theorem results_are_in_call_order : forall n es,
  (exists k, handed n es = seq 0 k) /\ forall i, In i (handed n es) -> In i es.
Proof.
  intros n es. split; [exists (cursor n 0 es); reflexivity|].
  intros i H. apply in_seq in H. apply (cursor_passes_ends n 0). lia.
Qed.

(** One more end only adds to it. *)
Theorem results_are_not_taken_back : forall n e es, exists more, handed n (e :: es) = handed n es ++ more.
Proof.
  intros n e es. pose proof (cursor_is_not_taken_back n 0 e es) as H. unfold handed.
  exists (seq (cursor n 0 es) (cursor n 0 (e :: es) - cursor n 0 es)).
  replace (cursor n 0 (e :: es)) with (cursor n 0 es + (cursor n 0 (e :: es) - cursor n 0 es)) at 1 by lia.
  rewrite seq_app. reflexivity.
Qed.

(** When all have ended the reader has all, whatever the order of the ends. *)
Theorem every_result_is_handed_over : forall n es, Permutation es (seq 0 n) -> handed n es = seq 0 n.
Proof.
  intros n es P. unfold handed. rewrite cursor_passes_all; [reflexivity|].
  intros i B. apply (Permutation_in i (Permutation_sym P)), in_seq. lia.
Qed.

(** * Memory, state and results together *)

(** What runs: lanes, one after the other.  A call of a lane sees the state as of the lane's start, also in its program,
    and it returns modifiers, which are merged when the lane is over.  All that it does besides is in the memory. *)
Record request := Request {
  asks : list claim;
  looks : nat -> Prop;                       (* the keys of the state that it reads *)
  changes : nat -> Prop;                     (* ... and those that its modifiers set *)
  body : state -> program;
  gives : state -> nat -> list modifier }.   (* the modifiers, by the state that it saw and its result *)

Definition called (s : state) (r : request) : call := submitted (asks r) (body r s).

Record keeps_promise (r : request) : Prop := Keeps_promise {
  touches_what_it_claims : forall s, honest (asks r) (body r s);
  looks_at_nothing_else : forall s t, (forall k, looks r k -> s k = t k) ->
    body r s = body r t /\ forall v, gives r s v = gives r t v;
  changes_nothing_else : forall seen v s k, ~ changes r k -> apply_all (gives r seen v) s k = s k }.

(** The modifiers of a lane, by what its calls have answered; a call that was cut off has none. *)
Fixpoint returned_by (s : state) (rs : list request) (answers : list (option nat)) : lane :=
  match rs, answers with
  | r :: rs', a :: rest => option_map (gives r s) a :: returned_by s rs' rest
  | _, _ => []
  end.

(** A lane runs to its end, in any order of steps, and the ends of its calls are merged, in whatever order they came. *)
Inductive lane_runs (limit : nat) (rs : list request) : memory * state -> list call -> memory * state -> Prop :=
| Lane_runs : forall m s cs m' es,
    run limit in_call_order (map (called s) rs, m) (cs, m') -> complete cs ->
    Permutation es (ends_from 0 (returned_by s rs (map answer cs))) ->
    lane_runs limit rs (m, s) cs (m', merge es s).

Inductive batch_runs (limit : nat) : list (list request) -> memory * state -> list call -> memory * state -> Prop :=
| No_lane : forall w, batch_runs limit [] w [] w
| One_lane : forall rs lanes w cs v ds u,
    lane_runs limit rs w cs v -> batch_runs limit lanes v ds u -> batch_runs limit (rs :: lanes) w (cs ++ ds) u.

(** The serial run: one call after the other, and each sees the memory and the state that the one before it left. *)
Inductive serial_batch : list request -> memory * state -> list nat -> memory * state -> Prop :=
| Serial_nothing : forall w, serial_batch [] w [] w
| Serial_request : forall r rs m s v n vs w,
    alone (body r s) m v n -> serial_batch rs (n, apply_all (gives r s v) s) vs w ->
    serial_batch (r :: rs) (m, s) (v :: vs) w.

(** No call of a lane reads a key of the state that an earlier call of the lane changes. *)
Definition lane_is_apart (rs : list request) : Prop :=
  ForallOrdPairs (fun r q => forall k, changes r k -> ~ looks q k) rs.

(** What the reader of a batch has when the calls [es] have ended. *)
Definition reader (cs : list call) (es : list nat) : list (option nat) :=
  map (fun i => nth i (map answer cs) None) (handed (length cs) es).

Lemma set_equal : forall m n l v, equal m n -> equal (set m l v) (set n l v).
Proof. intros m n l v E k. unfold set. destruct (loc_eq_dec k l); auto. Qed.

Lemma alone_equal : forall p m r m' n, alone p m r m' -> equal m n -> exists n', alone p n r n' /\ equal m' n'.
Proof.
  intros p m r m' n A. revert n. induction A as [r m|l next m r m' A IH|l v next m r m' A IH]; intros n E.
  - exists n. split; [constructor | exact E].
  - destruct (IH n E) as (n' & A' & E'). exists n'. split; [|exact E']. constructor. now rewrite <- (E l).
  - destruct (IH (set n l v)) as (n' & A' & E'); [now apply set_equal|]. exists n'. split; [now constructor | exact E'].
Qed.

Lemma serial_batch_app : forall rs qs w vs v us u,
  serial_batch rs w vs v -> serial_batch qs v us u -> serial_batch (rs ++ qs) w (vs ++ us) u.
Proof. intros rs qs w vs v us u R Q. induction R; simpl; [exact Q | econstructor; eauto]. Qed.

(** Calls that all saw the state [s] do as in a serial run from [now], where nothing that they look at is different. *)
Lemma snapshots_are_serial : forall rs s m vs m' now n,
  (forall r, In r rs -> keeps_promise r) -> lane_is_apart rs ->
  (forall r k, In r rs -> looks r k -> s k = now k) ->
  serial_run (map (called s) rs) m vs m' -> equal m n ->
  exists n', serial_batch rs (n, now) vs (n', in_order (returned_by s rs (map Some vs)) now) /\ equal m' n'.
Proof.
  induction rs as [|r rs IH]; intros s m vs m' now n K A L R E; inversion R as [|? ? ? v m1 vs' ? B R']; subst.
  - exists n. split; [constructor | exact E].
  - inversion A as [|? ? F A']; subst. rewrite Forall_forall in F.
    destruct (looks_at_nothing_else r (K r (or_introl eq_refl)) s now) as [Sb Sg].
    { intros k. apply L. left. reflexivity. }
    simpl in B. rewrite Sb in B. destruct (alone_equal _ _ _ _ _ B E) as (n1 & B' & E1).
    destruct (IH s m1 vs' m' (apply_all (gives r now v) now) n1) as (n' & S & E'); auto.
    { intros q I. apply K. right. exact I. }
    { intros q k I Lk. rewrite (changes_nothing_else r (K r (or_introl eq_refl))).
      - apply (L q); [right; exact I | exact Lk].
      - intros C. exact (F q I k C Lk). }
    exists n'. split; [|exact E']. simpl. rewrite Sg. econstructor; [exact B' | exact S].
Qed.

(** What a call did: all of its program if it returned, else the part that ran, without a modifier. *)
Definition ran (c : call) : call := match answer c with Some _ => c | None => as_far_as_it_came c end.

Definition as_it_ran (r : request) (c : call) : request :=
  match answer c with
  | Some _ => r
  | None => Request (asks r) (looks r) (changes r) (fun s => first_part (made c) (body r s)) (fun _ _ => [])
  end.

Fixpoint as_they_ran (rs : list request) (cs : list call) : list request :=
  match rs, cs with r :: rs', c :: cs' => as_it_ran r c :: as_they_ran rs' cs' | _, _ => [] end.

(** A call that returned has this result; what one that was cut off would have returned is not said. *)
Definition agrees (a : option nat) (v : nat) : Prop := forall w, a = Some w -> w = v.

Lemma serial_run_of_what_ran : forall cs m,
  fst (serially cs m) = map left cs ->
  exists vs, serial_run (map ran cs) m vs (snd (serially cs m)) /\ Forall2 agrees (map answer cs) vs.
Proof.
  induction cs as [|c cs IH]; intros m L; [exists []; split; constructor|]. simpl in *.
  pose proof (alone_many (made c) (whole c) m) as A.
  destruct (first_part_alone (made c) (whole c) m) as [q F].
  destruct (many (made c) (whole c) m) as [p n]. simpl in A, F.
  destruct (serially cs n) as [ps o] eqn:S. simpl in L. injection L as -> L.
  specialize (IH n). rewrite S in IH. destruct (IH L) as (vs & R & G). simpl in *.
  destruct (answer c) as [r|] eqn:E.
  - exists (r :: vs). split; [|constructor; [intros w W; congruence | exact G]].
    econstructor; [|exact R]. unfold ran. rewrite E. apply A.
    unfold answer in E. destruct (left c) as [r'| |]; [|discriminate | discriminate].
    injection E as ->. constructor.
  - exists (q :: vs). split; [|constructor; [discriminate | exact G]].
    econstructor; [|exact R]. unfold ran. rewrite E. exact F.
Qed.

Lemma honest_first_part : forall n cs p, honest cs p -> honest cs (first_part n p).
Proof. induction n; intros cs p H; [constructor|]. destruct H; simpl; constructor; auto. Qed.

Lemma as_it_ran_keeps_promise : forall r c, keeps_promise r -> keeps_promise (as_it_ran r c).
Proof.
  intros r c [T L C]. unfold as_it_ran. destruct (answer c); [now constructor|]. constructor; simpl.
  - intros s. apply honest_first_part, T.
  - intros s t E. destruct (L s t E) as [-> _]. auto.
  - reflexivity.
Qed.

Lemma in_as_they_ran : forall rs cs q, In q (as_they_ran rs cs) -> exists r c, In r rs /\ q = as_it_ran r c.
Proof.
  induction rs as [|r rs IH]; intros [|c cs] q I; simpl in I; try contradiction. destruct I as [<-|I].
  - exists r, c. split; [left; reflexivity | reflexivity].
  - destruct (IH cs q I) as (r' & c' & I' & E). exists r', c'. split; [right; exact I' | exact E].
Qed.

Lemma as_they_ran_apart : forall rs cs, lane_is_apart rs -> lane_is_apart (as_they_ran rs cs).
Proof.
  intros rs cs A. revert cs. induction A as [|r rs F A IH]; intros [|c cs]; simpl; try constructor; [|apply IH].
  rewrite Forall_forall in *. intros q I k. destruct (in_as_they_ran _ _ _ I) as (r' & c' & I' & ->).
  specialize (F r' I' k). unfold as_it_ran. destruct (answer c), (answer c'); simpl; exact F.
Qed.

Lemma as_they_ran_called : forall s rs cs,
  map identity (map (called s) rs) = map identity cs ->
  map identity (map ran cs) = map identity (map (called s) (as_they_ran rs cs)).
Proof.
  induction rs as [|r rs IH]; intros [|c cs] E; try discriminate; [reflexivity|]. simpl in *.
  injection E as C W E. rewrite (IH cs E). f_equal.
  unfold ran, as_it_ran, identity. destruct (answer c); simpl; congruence.
Qed.

Lemma as_they_ran_modifiers : forall s rs cs vs now,
  length rs = length cs -> Forall2 agrees (map answer cs) vs ->
  in_order (returned_by s (as_they_ran rs cs) (map Some vs)) now = in_order (returned_by s rs (map answer cs)) now.
Proof.
  induction rs as [|r rs IH]; intros [|c cs] vs now L F; try discriminate; [reflexivity|].
  simpl in F. inversion F as [|a v ? vs' G F']; subst. injection L as L. simpl. unfold as_it_ran.
  destruct (answer c) as [w|]; simpl; [rewrite (G w eq_refl)|]; apply IH; assumption.
Qed.

Lemma as_they_ran_app : forall rs qs cs ds, length rs = length cs ->
  as_they_ran (rs ++ qs) (cs ++ ds) = as_they_ran rs cs ++ as_they_ran qs ds.
Proof. induction rs; intros qs [|c cs] ds L; simpl in *; try discriminate; f_equal; auto. Qed.

Lemma lane_length : forall limit rs w cs v, lane_runs limit rs w cs v -> length rs = length cs.
Proof.
  intros limit rs w cs v L. destruct L as [m s cs m' es R _ _]. apply run_identity in R. simpl in R.
  apply (f_equal (@length _)) in R. now rewrite !map_length in R.
Qed.

Lemma lane_is_serial : forall limit rs m s cs m' s' n,
  (forall r, In r rs -> keeps_promise r) -> lane_is_apart rs -> lane_runs limit rs (m, s) cs (m', s') -> equal m n ->
  exists vs n', serial_batch (as_they_ran rs cs) (n, s) vs (n', s') /\ Forall2 agrees (map answer cs) vs /\ equal m' n'.
Proof.
  intros limit rs m s cs m' s' n K A L E. pose proof (lane_length _ _ _ _ _ L) as Len.
  inversion L as [m1 s1 cs1 m2 es R _ P E1 E2 E3]. subst m1 s1 cs1 m2 s'.
  destruct (every_run_is_serial limit (map (called s) rs) m cs m') as [F Em]; auto.
  { intros c I. apply in_map_iff in I as (r & <- & I). repeat split. }
  { intros c I. apply in_map_iff in I as (r & <- & I). apply (touches_what_it_claims r (K r I)). }
  destruct (serial_run_of_what_ran _ _ F) as (vs & S & G).
  apply run_identity in R. apply (serial_run_identity _ _ _ _ _ (as_they_ran_called s rs cs R)) in S.
  assert (K' : forall q, In q (as_they_ran rs cs) -> keeps_promise q).
  { intros q I. destruct (in_as_they_ran _ _ _ I) as (r & c & I' & ->). apply as_it_ran_keeps_promise, K, I'. }
  destruct (snapshots_are_serial _ s _ _ _ s n K' (as_they_ran_apart _ _ A) (fun _ _ _ _ => eq_refl) S E)
    as (n' & B & En).
  exists vs, n'. rewrite (merge_is_in_call_order _ _ s P), <- (as_they_ran_modifiers s rs cs vs s Len G).
  split; [exact B|]. split; [exact G|]. intros l. rewrite <- (Em l). apply En.
Qed.

Lemma map_nth_seq : forall {A} (xs : list A) d, map (fun i => nth i xs d) (seq 0 (length xs)) = xs.
Proof.
  induction xs as [|x xs IH]; intros d; [reflexivity|]. simpl. f_equal.
  rewrite <- seq_shift, map_map. apply IH.
Qed.

(** Theorem (e).  Whatever the order of steps, of ends and of merges within a lane, and whatever was cut: the batch ends
    in the memory and in the state of the serial run of what ran, and its reader has its results in call order. *)
Theorem every_batch_is_serial : forall limit lanes m s cs m' s' es,
  (forall rs r, In rs lanes -> In r rs -> keeps_promise r) -> (forall rs, In rs lanes -> lane_is_apart rs) ->
  batch_runs limit lanes (m, s) cs (m', s') -> Permutation es (seq 0 (length cs)) ->
  exists results serial,
    serial_batch (as_they_ran (concat lanes) cs) (m, s) results (serial, s') /\ equal serial m' /\
    reader cs es = map answer cs /\ Forall2 agrees (map answer cs) results.
Proof.
  intros limit lanes m s cs m' s' es K A B P.
  assert (G : forall n, equal m n -> exists vs n',
    serial_batch (as_they_ran (concat lanes) cs) (n, s) vs (n', s') /\
    Forall2 agrees (map answer cs) vs /\ equal m' n').
  { remember (m, s) as w eqn:W. remember (m', s') as z eqn:Z. revert m s m' s' W Z. clear P.
    induction B as [w|rs lanes w cs v ds u L B IH]; intros m s m' s' W Z n E; subst.
    - injection Z as <- <-. exists [], n. split; [constructor|]. split; [constructor | exact E].
    - destruct v as [m1 s1].
      destruct (lane_is_serial limit rs m s cs m1 s1 n) as (vs & n1 & S & G & E1); auto.
      { intros r I. apply (K rs); [left; reflexivity | exact I]. }
      { apply A. left. reflexivity. }
      destruct (IH (fun qs r I => K qs r (or_intror I)) (fun qs I => A qs (or_intror I))
        m1 s1 m' s' eq_refl eq_refl n1 E1) as (us & n2 & T & H & E2).
      exists (vs ++ us), n2. simpl. rewrite (as_they_ran_app _ _ _ _ (lane_length _ _ _ _ _ L)), map_app.
      split; [eapply serial_batch_app; eassumption|]. split; [now apply Forall2_app | exact E2]. }
  destruct (G m (fun _ => eq_refl)) as (vs & n & S & H & E). exists vs, n.
  split; [exact S|]. split; [intros l; symmetry; apply E|]. split; [|exact H].
  unfold reader. rewrite (every_result_is_handed_over _ _ P), <- (map_length answer cs). apply map_nth_seq.
Qed.

(** ... and if no call was cut, that is the serial run of the calls themselves. *)
Theorem batch_is_serial : forall limit lanes m s cs m' s' es,
  (forall rs r, In rs lanes -> In r rs -> keeps_promise r) -> (forall rs, In rs lanes -> lane_is_apart rs) ->
  batch_runs limit lanes (m, s) cs (m', s') -> uncut cs -> Permutation es (seq 0 (length cs)) ->
  exists results serial,
    serial_batch (concat lanes) (m, s) results (serial, s') /\ equal serial m' /\ reader cs es = map Some results.
Proof.
  intros limit lanes m s cs m' s' es K A B U P.
  destruct (every_batch_is_serial limit lanes m s cs m' s' es K A B P) as (vs & n & S & E & -> & F).
  assert (L : length (concat lanes) = length cs).
  { clear - B. induction B as [w|rs lanes w cs v ds u L B IH]; [reflexivity|]. simpl.
    rewrite !app_length, IH. now rewrite (lane_length _ _ _ _ _ L). }
  assert (W : as_they_ran (concat lanes) cs = concat lanes).
  { revert L U. generalize (concat lanes). clear. intros rs. revert cs.
    induction rs as [|r rs IH]; intros [|c cs] L U; try discriminate; [reflexivity|]. simpl. f_equal.
    - unfold as_it_ran. pose proof (U c (or_introl eq_refl)). destruct (answer c); [reflexivity | contradiction].
    - apply IH; [now injection L | intros d I; apply U; right; exact I]. }
  rewrite W in S. exists vs, n. split; [exact S|]. split; [exact E|].
  revert U F. clear. revert vs. induction cs as [|c cs IH]; intros vs U F; inversion F as [|a v ? vs' G F']; subst;
    [reflexivity|]. simpl. f_equal.
  - pose proof (U c (or_introl eq_refl)). destruct (answer c) as [w|]; [now rewrite (G w eq_refl) | contradiction].
  - apply IH; [intros d I; apply U; right; exact I | exact F'].
Qed.

(** The runtime keeps lanes apart by claims: a key of the state is a location, and two calls whose claims on the state
    conflict are in lanes of their own.  A claim on the root with its subtree is one on every key. *)
Definition key (k : nat) : loc := [0; k].

Definition on_the_state (c : claim) : bool := match resource c with [] => true | x :: _ => Nat.eqb x 0 end.

Definition meet_in_the_state (r q : request) : bool :=
  conflicts (filter on_the_state (asks r)) (filter on_the_state (asks q)).

Lemma covered_on_the_state : forall cs m k, covered cs m (key k) -> covered (filter on_the_state cs) m (key k).
Proof.
  intros cs m k (c & I & H). exists c. split; [|exact H]. apply filter_In. split; [exact I|].
  unfold allows, reaches in H. apply andb_true_iff in H as [H _]. unfold on_the_state.
  destruct (resource c) as [|x xs]; [reflexivity|]. apply orb_true_iff in H as [H|H].
  - apply same_true in H. injection H as -> _. reflexivity.
  - apply andb_true_iff in H as [_ H]. simpl in H. now apply andb_true_iff in H as [H _].
Qed.

Theorem claims_keep_lanes_apart : forall rs,
  (forall r k, In r rs -> looks r k -> covered (asks r) READ (key k)) ->
  (forall r k, In r rs -> changes r k -> covered (asks r) WRITE (key k)) ->
  ForallOrdPairs (fun r q => meet_in_the_state r q = false) rs -> lane_is_apart rs.
Proof.
  intros rs L C F. induction F as [|r rs F1 F IH]; [constructor|]. constructor.
  - rewrite Forall_forall in *. intros q I k Ck Lk. specialize (F1 q I). unfold meet_in_the_state in F1.
    rewrite (covered_conflicts _ _ WRITE READ (key k)) in F1; [discriminate | | | left; reflexivity].
    + apply covered_on_the_state, C; [left; reflexivity | exact Ck].
    + apply covered_on_the_state, L; [right; exact I | exact Lk].
  - apply IH; intros q k I; [apply L | apply C]; right; exact I.
Qed.

(** * Counterexamples: what each hypothesis is needed for *)

Lemma first : forall limit granted s t u,
  step limit granted s t -> run limit granted t u -> run limit granted s u.
Proof.
  intros limit granted s t u St R. induction R as [t|t v w R IH St'].
  - eapply More; [apply Nothing | exact St].
  - eapply More; [apply IH, St | exact St'].
Qed.

(** The steps of two calls. *)
Section Two.
  Variables (limit : nat) (g : gate) (c d : call) (m : memory).

  Lemma start_0 : at_ c = Waiting -> g [] c [d] -> running [c; d] < limit ->
    step limit g ([c; d], m) ([started c; d], m).
  Proof. intros; apply (Start limit g [] c [d]); assumption. Qed.
  Lemma start_1 : at_ d = Waiting -> g [c] d [] -> running [c; d] < limit ->
    step limit g ([c; d], m) ([c; started d], m).
  Proof. intros; apply (Start limit g [c] d []); assumption. Qed.
  Lemma access_0 : at_ c = Running -> (forall r, left c <> Return r) ->
    step limit g ([c; d], m) ([advanced c (fst (one (left c) m)); d], snd (one (left c) m)).
  Proof. intros; apply (Access limit g [] c [d]); [assumption | assumption | now destruct (one (left c) m)]. Qed.
  Lemma access_1 : at_ d = Running -> (forall r, left d <> Return r) ->
    step limit g ([c; d], m) ([c; advanced d (fst (one (left d) m))], snd (one (left d) m)).
  Proof. intros; apply (Access limit g [c] d []); [assumption | assumption | now destruct (one (left d) m)]. Qed.
  Lemma finish_0 : forall r, at_ c = Running -> left c = Return r -> step limit g ([c; d], m) ([ended c; d], m).
  Proof. intros r **; apply (Finish limit g [] c [d] m r); assumption. Qed.
  Lemma finish_1 : forall r, at_ d = Running -> left d = Return r -> step limit g ([c; d], m) ([c; ended d], m).
  Proof. intros r **; apply (Finish limit g [c] d [] m r); assumption. Qed.
End Two.

Ltac go step := eapply first; [eapply step; try reflexivity; try (intros; simpl; discriminate); try (unfold running; simpl; lia) |]; simpl.
Ltac done := apply Nothing.

Definition note : loc := [1].
Definition zero : memory := fun _ => 0.

(** Read a counter and write it back plus one. *)
Definition increment : program := Read note (fun v => Write note (S v) (Return v)).
Definition assign (v : nat) : program := Write note v (Return v).
Definition may_write : list claim := [Claim note WRITE false].

Lemma increment_honest : honest may_write increment.
Proof.
  assert (C : forall m, covered may_write m note).
  { intros m. exists (Claim note WRITE false). split; [left; reflexivity | destruct m; reflexivity]. }
  repeat (constructor; auto).
Qed.

Lemma assign_honest : forall v, honest may_write (assign v).
Proof.
  intros v. repeat constructor. exists (Claim note WRITE false). split; [left; reflexivity | reflexivity].
Qed.

(** What the serial run of these calls leaves at [note]. *)
Definition serially_note_is (v : nat) (cs : list call) : Prop :=
  exists results serial, serial_run cs zero results serial /\ serial note = v.

Ltac serial := do 2 eexists; split; [repeat econstructor | reflexivity].

(** 1. Calls that touch what they do not claim: one of two increments is lost. *)
Example unclaimed_updates_are_lost : exists cs m,
  run 2 in_call_order ([submitted [] increment; submitted [] increment], zero) (cs, m) /\
  complete cs /\ uncut cs /\
  m note = 1 /\ serially_note_is 2 [submitted [] increment; submitted [] increment].
Proof.
  do 2 eexists. split; [|split; [|split; [|split]]].
  - go start_0. { intros e []. }
    go start_1. { intros e [<-|[]] K; discriminate. }
    go access_0. go access_1. go access_0. go access_1. go finish_0. go finish_1. done.
  - intros c [<-|[<-|[]]]; reflexivity.
  - intros c [<-|[<-|[]]]; discriminate.
  - reflexivity.
  - serial.
Qed.

(** 2. A call that waits for nothing: the same, with honest claims. *)
Definition never_waits : gate := fun _ _ _ => True.

Example without_tickets_updates_are_lost : exists cs m,
  run 2 never_waits ([submitted may_write increment; submitted may_write increment], zero) (cs, m) /\
  all_honest [submitted may_write increment; submitted may_write increment] /\ complete cs /\ uncut cs /\
  m note = 1 /\ serially_note_is 2 [submitted may_write increment; submitted may_write increment].
Proof.
  do 2 eexists. split; [|split; [|split; [|split; [|split]]]].
  - go start_0. go start_1.
    go access_0. go access_1. go access_0. go access_1. go finish_0. go finish_1. done.
  - intros c [<-|[<-|[]]]; apply increment_honest.
  - intros c [<-|[<-|[]]]; reflexivity.
  - intros c [<-|[<-|[]]]; discriminate.
  - reflexivity.
  - serial.
Qed.

(** 3. A lock in place of tickets: no two conflicting calls run at once, but the later one may come first. *)
Definition locks : gate := fun earlier c later =>
  forall e, In e (earlier ++ later) -> conflicts (claims e) (claims c) = true -> at_ e <> Running.

Example a_lock_has_no_order : exists cs m,
  run 2 locks ([submitted may_write (assign 1); submitted may_write (assign 2)], zero) (cs, m) /\
  all_honest [submitted may_write (assign 1); submitted may_write (assign 2)] /\ complete cs /\ uncut cs /\
  m note = 1 /\ serially_note_is 2 [submitted may_write (assign 1); submitted may_write (assign 2)].
Proof.
  do 2 eexists. split; [|split; [|split; [|split; [|split]]]].
  - go start_1. { intros e [<-|[]] _; discriminate. }
    go access_1. go finish_1.
    go start_0. { intros e [<-|[]] _; discriminate. }
    go access_0. go finish_0. done.
  - intros c [<-|[<-|[]]]; apply assign_honest.
  - intros c [<-|[<-|[]]]; reflexivity.
  - intros c [<-|[<-|[]]]; discriminate.
  - reflexivity.
  - serial.
Qed.

(** 4. Claims compared by name alone: a subtree and a file in it do not wait for each other. *)
Definition by_name : gate := fun earlier c _ =>
  forall e, In e earlier ->
  existsb (fun a => existsb (fun b => same (resource a) (resource b) && (writes a || writes b)) (claims c)) (claims e)
    = true -> at_ e = Ended.

Definition may_write_all : list claim := [Claim [] WRITE true].

Example subtrees_have_to_be_seen : exists cs m,
  run 2 by_name ([submitted may_write_all (assign 1); submitted may_write (assign 2)], zero) (cs, m) /\
  all_honest [submitted may_write_all (assign 1); submitted may_write (assign 2)] /\ complete cs /\ uncut cs /\
  m note = 1 /\ serially_note_is 2 [submitted may_write_all (assign 1); submitted may_write (assign 2)].
Proof.
  do 2 eexists. split; [|split; [|split; [|split; [|split]]]].
  - go start_1. { intros e [<-|[]] K; discriminate. }
    go access_1. go finish_1.
    go start_0. { intros e []. }
    go access_0. go finish_0. done.
  - intros c [<-|[<-|[]]]; [|apply assign_honest]. repeat constructor.
    exists (Claim [] WRITE true). split; [left; reflexivity | reflexivity].
  - intros c [<-|[<-|[]]]; reflexivity.
  - intros c [<-|[<-|[]]]; discriminate.
  - reflexivity.
  - serial.
Qed.

(** 5. Reads that do not wait for writes: a call sees half of what an earlier one does. *)
Definition writers_only : gate := fun earlier c _ =>
  forall e, In e earlier ->
  existsb (fun a => existsb (fun b => overlap a b && writes a && writes b) (claims c)) (claims e) = true ->
  at_ e = Ended.

Definition may_read : list claim := [Claim note READ false].
Definition look : program := Read note (fun v => Return v).

Example readers_have_to_wait : exists cs m,
  run 2 writers_only ([submitted may_write (assign 1); submitted may_read look], zero) (cs, m) /\
  all_honest [submitted may_write (assign 1); submitted may_read look] /\ complete cs /\ uncut cs /\
  map answer cs = [Some 1; Some 0] /\
  exists serial, serial_run [submitted may_write (assign 1); submitted may_read look] zero [1; 1] serial.
Proof.
  do 2 eexists. split; [|split; [|split; [|split; [|split]]]].
  - go start_1. { intros e [<-|[]] K; discriminate. }
    go access_1. go finish_1.
    go start_0. { intros e []. }
    go access_0. go finish_0. done.
  - intros c [<-|[<-|[]]]; [apply assign_honest|]. repeat constructor.
    exists (Claim note READ false). split; [left; reflexivity | reflexivity].
  - intros c [<-|[<-|[]]]; reflexivity.
  - intros c [<-|[<-|[]]]; discriminate.
  - reflexivity.
  - eexists. repeat econstructor.
Qed.

(** Where every call waits, a batch goes on only by a start. *)
Lemma stuck : forall limit (granted : gate) cs m,
  (forall c, In c cs -> at_ c = Waiting) ->
  (forall before c after, cs = before ++ c :: after -> granted before c after -> ~ running cs < limit) ->
  ~ goes_on limit granted cs m.
Proof.
  intros limit granted cs m W G (ds & n & St & b & c & c' & a & E & D & H).
  assert (R : at_ c' = Running).
  { destruct H as [[_ H]|[H _]]; [exact H|]. rewrite (W c) in H; [discriminate|]. rewrite E. apply In_middle. auto. }
  inversion St as [b2 c2 a2 n2 W2 G2 L E1 E2 | b2 c2 a2 n2 p' n' R2 N O E1 E2
                  | b2 c2 a2 n2 r R2 L E1 E2 | b2 c2 a2 n2 N E1 E2]; subst n2.
  - exact (G b2 c2 a2 (eq_sym E1) G2 ltac:(rewrite <- E1; exact L)).
  - rewrite (W c2) in R2; [discriminate|]. rewrite <- E1. apply In_middle. auto.
  - rewrite (W c2) in R2; [discriminate|]. rewrite <- E1. apply In_middle. auto.
  - rewrite D in E2.
    assert (I : c' = ended c2 \/ In c' cs).
    { rewrite <- E1. destruct (split_two _ _ _ _ _ _ E2) as [(_ & X & _)|[(e & _ & ->)|(e & -> & _)]]; [auto| |].
      - right. apply In_middle. right; right. apply In_middle. auto.
      - right. apply In_middle. left. apply In_middle. auto. }
    destruct I as [->|I]; [discriminate|]. rewrite (W c' I) in R. discriminate.
Qed.

(** 6. No slot: nothing ever starts. *)
Example without_a_slot_nothing_starts : forall m,
  ~ complete [submitted [] (Return 0)] /\ ~ goes_on 0 in_call_order [submitted [] (Return 0)] m.
Proof.
  intros m. split.
  - intros C. specialize (C _ (or_introl eq_refl)). discriminate.
  - apply stuck; [intros c [<-|[]]; reflexivity | intros; lia].
Qed.

(** No place: a call that takes one never starts. *)
Example without_a_place_nothing_starts : forall limit m,
  let places := with_places (fun _ _ => true) (fun _ => 0) in
  ~ complete [submitted [] (Return 0)] /\ ~ goes_on limit places [submitted [] (Return 0)] m.
Proof.
  intros limit m places. split.
  - intros C. specialize (C _ (or_introl eq_refl)). discriminate.
  - apply stuck; [intros c [<-|[]]; reflexivity|]. intros b c a _ [_ G]. specialize (G [] eq_refl). lia.
Qed.

(** 7. Calls that wait for later ones too: two that conflict wait for each other, for ever. *)
Definition waits_for_all : gate := fun earlier c later =>
  forall e, In e (earlier ++ later) -> conflicts (claims e) (claims c) = true -> at_ e = Ended.

Example waiting_for_later_calls_deadlocks : forall limit m,
  let cs := [submitted may_write (assign 1); submitted may_write (assign 2)] in
  ~ complete cs /\ ~ goes_on limit waits_for_all cs m.
Proof.
  intros limit m cs. split.
  - intros C. specialize (C _ (or_introl eq_refl)). discriminate.
  - apply stuck; [intros c [<-|[<-|[]]]; reflexivity|].
    intros b c a E G _. destruct b as [|x [|y b]].
    + injection E as <- <-. specialize (G _ (or_introl eq_refl) eq_refl). discriminate.
    + injection E as <- <- <-. specialize (G _ (or_introl eq_refl) eq_refl). discriminate.
    + destruct b; discriminate.
Qed.

(** 8. A call that runs on after its tickets were given back: what it does then is not seen by the rest in any order. *)
Inductive step_with_zombies (limit : nat) (granted : gate) : list call * memory -> list call * memory -> Prop :=
| Lawful : forall s t, step limit granted s t -> step_with_zombies limit granted s t
| Zombie : forall before c after m p' m',
    at_ c = Ended -> (forall r, left c <> Return r) -> one (left c) m = (p', m') ->
    step_with_zombies limit granted
      (before ++ c :: after, m) (before ++ ended (advanced c p') :: after, m').

Inductive run_with_zombies (limit : nat) (granted : gate) : list call * memory -> list call * memory -> Prop :=
| Nothing_yet : forall s, run_with_zombies limit granted s s
| One_more : forall s t u,
    step_with_zombies limit granted s t -> run_with_zombies limit granted t u -> run_with_zombies limit granted s u.

Example zombies_break_the_order : exists cs m,
  run_with_zombies 2 in_call_order
    ([submitted may_write increment; submitted may_write increment], zero) (cs, m) /\
  complete cs /\ m note = 1 /\ serially_note_is 2 (map as_far_as_it_came cs).
Proof.
  do 2 eexists. split; [|split; [|split]].
  - eapply One_more. { apply Lawful. eapply start_0; try reflexivity; [intros e [] | unfold running; simpl; lia]. }
    eapply One_more. { apply Lawful. eapply access_0; [reflexivity | discriminate]. } simpl.
    eapply One_more. { apply Lawful. apply (Cut 2 in_call_order []). discriminate. }
    eapply One_more. { apply Lawful. eapply start_1; try reflexivity; [| unfold running; simpl; lia]. intros e [<-|[]] _. reflexivity. }
    eapply One_more. { apply Lawful. eapply access_1; [reflexivity | discriminate]. } simpl.
    eapply One_more. { apply Lawful. eapply access_1; [reflexivity | discriminate]. } simpl.
    eapply One_more. { apply Lawful. eapply finish_1; reflexivity. }
    eapply One_more. { eapply (Zombie 2 in_call_order []); [reflexivity | discriminate | reflexivity]. }
    apply Nothing_yet.
  - intros c [<-|[<-|[]]]; reflexivity.
  - reflexivity.
  - serial.
Qed.

(** 9. Modifiers applied in the order of ends: that order decides. *)
Definition put (k v : nat) : modifier := fun s => Some (fun x => if Nat.eqb x k then v else s x).

Definition zero_state : state := fun _ => 0.

Definition merge_as_they_come (es : list end_) (s : state) : state :=
  fold_left (fun s e => apply_all (snd e) s) es s.

Example the_order_of_ends_decides :
  Permutation [(0, [put 7 1]); (1, [put 7 2])] [(1, [put 7 2]); (0, [put 7 1])] /\
  merge_as_they_come [(0, [put 7 1]); (1, [put 7 2])] zero_state 7 = 2 /\
  merge_as_they_come [(1, [put 7 2]); (0, [put 7 1])] zero_state 7 = 1.
Proof. repeat split. apply perm_swap. Qed.

(** 10. Two ends with one index: then sorting does not decide between them. *)
Example one_index_twice_decides_nothing :
  Permutation [(0, [put 7 1]); (0, [put 7 2])] [(0, [put 7 2]); (0, [put 7 1])] /\
  merge [(0, [put 7 1]); (0, [put 7 2])] zero_state 7 <> merge [(0, [put 7 2]); (0, [put 7 1])] zero_state 7.
Proof. split; [apply perm_swap | discriminate]. Qed.

(** 11. A call that reads from its snapshot what an earlier call of the lane changes: its update takes no account of it. *)
Definition count_up : tool := fun seen => [put 7 (S (seen 7))].

Example snapshots_lose_updates :
  lane_run [count_up; count_up] zero_state 7 = 1 /\ serial_state [count_up; count_up] zero_state 7 = 2.
Proof. split; reflexivity. Qed.

(** 12. A modifier that reads the state it is given does not lose it, even when the call's snapshot is old. *)
Definition add_one : tool := fun _ => [fun s => Some (fun x => if Nat.eqb x 7 then S (s 7) else s x)].

Example reading_the_argument_is_serial :
  lane_run [add_one; add_one] zero_state 7 = 2 /\ serial_state [add_one; add_one] zero_state 7 = 2.
Proof. split; reflexivity. Qed.

(** 13. A program that never ends: its run has no end, unless it is cut. *)
CoFixpoint look_for_ever : program := Read note (fun _ => look_for_ever).

Lemma look_for_ever_reads : look_for_ever = Read note (fun _ => look_for_ever).
Proof.
  transitivity (match look_for_ever with Read l k => Read l k | p => p end); [now destruct look_for_ever | reflexivity].
Qed.

Lemma running_for_ever : forall s, Acc later_than s -> forall c m, s = ([c], m) -> at_ c = Running ->
  left c <> look_for_ever.
Proof.
  intros s A. induction A as [s _ IH]. intros c m -> R L.
  refine (IH ([advanced c look_for_ever], m) _ (advanced c look_for_ever) m eq_refl eq_refl eq_refl).
  exists 1, in_call_order. apply (Access 1 in_call_order [] c []); [exact R | |]; rewrite L.
  - intros r. rewrite look_for_ever_reads. discriminate.
  - transitivity (one (Read note (fun _ => look_for_ever)) m); [now rewrite <- look_for_ever_reads | reflexivity].
Qed.

Example a_tool_may_never_end : forall m, ~ Acc later_than ([submitted may_read look_for_ever], m).
Proof.
  intros m A. refine (running_for_ever ([started (submitted may_read look_for_ever)], m) _ _ m eq_refl eq_refl eq_refl).
  apply (Acc_inv A). exists 1, in_call_order. apply (Start 1 in_call_order [] _ []); [reflexivity | intros e [] |].
  unfold running. simpl. lia.
Qed.

(** * No axiom *)

Print Assumptions every_run_is_serial.
Print Assumptions complete_run_is_serial.
Print Assumptions cut_calls_change_nothing_else.
Print Assumptions unbegun_calls_count_as_none.
Print Assumptions some_call_can_go_on.
Print Assumptions every_run_ends.
Print Assumptions merge_ignores_the_order_of_ends.
Print Assumptions merge_is_in_call_order.
Print Assumptions merge_ignores_cancelled_calls.
Print Assumptions merge_is_serial.
Print Assumptions results_are_in_call_order.
Print Assumptions results_are_not_taken_back.
Print Assumptions every_result_is_handed_over.
Print Assumptions every_batch_is_serial.
Print Assumptions batch_is_serial.
Print Assumptions claims_keep_lanes_apart.
Print Assumptions runs_with_places_are_serial.
Print Assumptions some_call_can_go_on_with_places.
Print Assumptions places_hold.
Print Assumptions rates_hold.
Print Assumptions some_call_can_go_on_in_time.
