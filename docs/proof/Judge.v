(** A judge of traces: it decides whether what a batch did is a run of the model of Ordering.v.

    A trace shows no accesses.  It shows when calls take their tickets, start and end, which modifiers are applied when
    a lane is merged, and which results the reader is handed.  [allowed] says of each such event when the model has it;
    [judge] computes that, and names the theorem that a refused event breaks.

    - [judge_is_the_relation]: the judge accepts a trace if, and only if, the relation has steps for it to an end.
    - [accepted_traces_are_runs]: an accepted trace in which no call runs twice is a run of the model of Ordering.v.
    - [runs_are_accepted]: every complete run of that model has a trace that the judge accepts.
    - [the_reader_has_a_prefix]: in an accepted trace the results come in call order.

    The relation has more than the model: lanes that follow each other, claims that a call knows late, and calls that
    run once more.  [Extraction] at the end writes the judge in OCaml; judge.ml reads traces for it. *)

From Coq Require Import List Arith Lia Bool Extraction ExtrOcamlBasic.
Import ListNotations.
Require Import Ordering.

(** * What a trace shows *)

Inductive event :=
| Awaits (i lane : nat) (cs : list claim)   (* call [i] takes its place with what its claims look at *)
| Takes (i lane : nat) (cs : list claim)    (* it takes its tickets, at once or when it knows its claims *)
| Starts (i : nat)
| Pauses (i : nat)                          (* it has ended, keeps its tickets and runs once more *)
| Ends (i : nat)
| Settles (i modifiers : nat)               (* it has a result, with so many modifiers *)
| Applies (lane i position : nat)           (* one of its modifiers is applied to the state *)
| Merges (lane : nat)                       (* the lane is over *)
| Hands (i : nat).                          (* the reader gets its result *)

(** How a trace ends: the batch was left, and its reader wanted so many results if it read to the end. *)
Inductive ending := Was_left (wanted : option nat) | Stopped.

(** What has become of a call: [Awaiting] holds tickets and does not know its claims, [Queued] knows them. *)
Inductive stage := Unplaced | Awaiting | Queued | Working | Gone.

Record entry := Entry {
  holds : list claim;
  stage_of : stage;
  begun : bool;            (* it has been started, and may have touched what it claims *)
  lane_of : nat;
  gives : option nat }.  (* how many modifiers its result has *)

(** The calls of a batch, each at the place of its index; the lane that is open and what was applied in it; how many
    results the reader has. *)
Record book := Book { entries : list entry; open_lane : nat; applied : list (nat * nat); reader_has : nat }.

Definition opened (calls : nat) : book := Book (repeat (Entry [] Unplaced false 0 None) calls) 0 [] 0.

Definition with_stage (p : stage) (e : entry) : entry := Entry (holds e) p (begun e) (lane_of e) (gives e).
Definition placed (p : stage) (lane : nat) (cs : list claim) (e : entry) : entry :=
  Entry cs p (begun e) lane (gives e).
Definition set_off (e : entry) : entry := Entry (holds e) Working true (lane_of e) (gives e).
Definition settled (n : nat) (e : entry) : entry := Entry (holds e) (stage_of e) (begun e) (lane_of e) (Some n).
Definition with_entries (b : book) (es : list entry) : book := Book es (open_lane b) (applied b) (reader_has b).

Definition is_working (e : entry) : bool := match stage_of e with Working => true | _ => false end.
Definition working (es : list entry) : nat := length (filter is_working es).

Definition is_member (lane : nat) (e : entry) : bool :=
  match stage_of e with Unplaced => false | _ => Nat.eqb (lane_of e) lane end.

(** The modifiers of a lane in call order: those of each call that has a result, by their positions. *)
Fixpoint wanted (lane i : nat) (es : list entry) : list (nat * nat) :=
  match es with
  | [] => []
  | e :: rest =>
      (if is_member lane e then map (pair i) (seq 0 (match gives e with Some n => n | None => 0 end)) else [])
      ++ wanted lane (S i) rest
  end.

Definition comes_before (a b : nat * nat) : bool := (fst a <? fst b) || ((fst a =? fst b) && (snd a <? snd b)).

(** * The relation *)

(** No later call that has begun conflicts with these claims. *)
Definition in_time (cs : list claim) (later : list entry) : Prop :=
  forall d, In d later -> begun d = true -> conflicts cs (holds d) = false.

(** The tickets of a call are granted: each earlier call whose claims conflict with its own has ended. *)
Definition first_in_line (earlier : list entry) (e : entry) : Prop :=
  forall d, In d earlier -> conflicts (holds d) (holds e) = true -> stage_of d = Gone.

Section Allowed.
  Variable limit : nat.

  Inductive allowed (b : book) : event -> book -> Prop :=
  | Has_awaits : forall before e after cs,
      entries b = before ++ e :: after -> stage_of e = Unplaced -> in_time cs after ->
      allowed b (Awaits (length before) (open_lane b) cs)
        (with_entries b (before ++ placed Awaiting (open_lane b) cs e :: after))
  | Has_takes : forall before e after cs,
      entries b = before ++ e :: after ->
      stage_of e = Unplaced \/ stage_of e = Awaiting -> in_time cs after ->
      allowed b (Takes (length before) (open_lane b) cs)
        (with_entries b (before ++ placed Queued (open_lane b) cs e :: after))
  | Has_starts : forall before e after,
      entries b = before ++ e :: after -> stage_of e = Queued ->
      first_in_line before e -> working (entries b) < limit ->
      allowed b (Starts (length before)) (with_entries b (before ++ set_off e :: after))
  | Has_pauses : forall before e after,
      entries b = before ++ e :: after -> stage_of e = Working ->
      allowed b (Pauses (length before)) (with_entries b (before ++ with_stage Queued e :: after))
  | Has_ends : forall before e after,
      entries b = before ++ e :: after -> stage_of e <> Unplaced -> stage_of e <> Gone ->
      allowed b (Ends (length before)) (with_entries b (before ++ with_stage Gone e :: after))
  (* A result may be replaced until the reader has it. *)
  | Has_settles : forall before e after n,
      entries b = before ++ e :: after -> reader_has b <= length before ->
      allowed b (Settles (length before) n) (with_entries b (before ++ settled n e :: after))
  | Has_applies : forall before e after p,
      entries b = before ++ e :: after -> is_member (open_lane b) e = true -> stage_of e = Gone ->
      (forall a, In a (applied b) -> comes_before a (length before, p) = true) ->
      allowed b (Applies (open_lane b) (length before) p)
        (Book (entries b) (open_lane b) (applied b ++ [(length before, p)]) (reader_has b))
  | Has_merges :
      (forall e, In e (entries b) -> is_member (open_lane b) e = true -> stage_of e = Gone) ->
      applied b = wanted (open_lane b) 0 (entries b) ->
      allowed b (Merges (open_lane b)) (Book (entries b) (S (open_lane b)) [] (reader_has b))
  | Has_hands : forall before e after,
      entries b = before ++ e :: after -> length before = reader_has b -> gives e <> None ->
      allowed b (Hands (length before)) (Book (entries b) (open_lane b) (applied b) (S (reader_has b))).

  Inductive steps : book -> list event -> book -> Prop :=
  | No_step : forall b, steps b [] b
  | One_step : forall b e c es d, allowed b e c -> steps c es d -> steps b (e :: es) d.
End Allowed.

(** A batch is over when each call that took its place has ended, and who read to the end has every result. *)
Definition may_end (b : book) (last : ending) : Prop :=
  (forall e, In e (entries b) -> stage_of e = Unplaced \/ stage_of e = Gone) /\
  exists n, last = Was_left n /\ match n with Some k => k <= reader_has b | None => True end.

(** * The judge *)

(** The theorem that a refused event breaks. *)
Inductive theorem :=
| Every_run_is_serial | Batch_is_serial | Merge_is_in_call_order | Results_are_in_call_order
| Results_are_not_taken_back | Every_result_is_handed_over | Some_call_can_go_on | Every_run_ends.

Inductive verdict (A : Type) := Fine (a : A) | Refused (why : theorem).
Arguments Fine {A}. Arguments Refused {A}.

Definition need {A} (holds : bool) (why : theorem) (rest : verdict A) : verdict A :=
  if holds then rest else Refused why.

(** The entry of a call, and those before and behind it. *)
Fixpoint at_index (i : nat) (es : list entry) {struct es} : option (list entry * entry * list entry) :=
  match es, i with
  | [], _ => None
  | e :: rest, 0 => Some ([], e, rest)
  | d :: rest, S j =>
      match at_index j rest with Some (before, e, after) => Some (d :: before, e, after) | None => None end
  end.

Definition is_unplaced (e : entry) : bool := match stage_of e with Unplaced => true | _ => false end.
Definition is_awaiting (e : entry) : bool := match stage_of e with Awaiting => true | _ => false end.
Definition is_queued (e : entry) : bool := match stage_of e with Queued => true | _ => false end.
Definition is_gone (e : entry) : bool := match stage_of e with Gone => true | _ => false end.

Definition is_in_time (cs : list claim) (later : list entry) : bool :=
  forallb (fun d => negb (begun d && conflicts cs (holds d))) later.
Definition is_first_in_line (earlier : list entry) (e : entry) : bool :=
  forallb (fun d => negb (conflicts (holds d) (holds e)) || is_gone d) earlier.

Definition none_waits (lane : nat) (es : list entry) : bool :=
  forallb (fun e => negb (is_member lane e && (is_awaiting e || is_queued e))) es.
Definition all_have_ended (lane : nat) (es : list entry) : bool :=
  forallb (fun e => negb (is_member lane e) || is_gone e) es.

Definition pair_eqb (a b : nat * nat) : bool := (fst a =? fst b) && (snd a =? snd b).
Fixpoint same_list (a b : list (nat * nat)) {struct a} : bool :=
  match a, b with
  | [], [] => true
  | x :: a', y :: b' => pair_eqb x y && same_list a' b'
  | _, _ => false
  end.

Definition on (b : book) (i : nat) (why : theorem)
    (f : list entry -> entry -> list entry -> verdict book) : verdict book :=
  match at_index i (entries b) with Some (before, e, after) => f before e after | None => Refused why end.

Definition next (limit : nat) (b : book) (ev : event) : verdict book :=
  match ev with
  | Awaits i lane cs => on b i Every_run_is_serial (fun before e after =>
      need (is_unplaced e) Every_run_is_serial
      (need (lane =? open_lane b) Batch_is_serial
      (need (is_in_time cs after) Every_run_is_serial
      (Fine (with_entries b (before ++ placed Awaiting lane cs e :: after))))))
  | Takes i lane cs => on b i Every_run_is_serial (fun before e after =>
      need (is_unplaced e || is_awaiting e) Every_run_is_serial
      (need (lane =? open_lane b) Batch_is_serial
      (need (is_in_time cs after) Every_run_is_serial
      (Fine (with_entries b (before ++ placed Queued lane cs e :: after))))))
  | Starts i => on b i Every_run_is_serial (fun before e after =>
      need (is_queued e && is_first_in_line before e && (working (entries b) <? limit)) Every_run_is_serial
      (Fine (with_entries b (before ++ set_off e :: after))))
  | Pauses i => on b i Every_run_is_serial (fun before e after =>
      need (is_working e) Every_run_is_serial (Fine (with_entries b (before ++ with_stage Queued e :: after))))
  | Ends i => on b i Every_run_is_serial (fun before e after =>
      need (negb (is_unplaced e) && negb (is_gone e)) Every_run_is_serial
      (Fine (with_entries b (before ++ with_stage Gone e :: after))))
  | Settles i n => on b i Results_are_not_taken_back (fun before e after =>
      need (reader_has b <=? i) Results_are_not_taken_back
      (Fine (with_entries b (before ++ settled n e :: after))))
  | Applies lane i p => on b i Merge_is_in_call_order (fun before e after =>
      need ((lane =? open_lane b) && is_member lane e && is_gone e
            && forallb (fun a => comes_before a (i, p)) (applied b)) Merge_is_in_call_order
      (Fine (Book (entries b) (open_lane b) (applied b ++ [(i, p)]) (reader_has b))))
  | Merges lane =>
      need (lane =? open_lane b) Batch_is_serial
      (need (none_waits lane (entries b)) Some_call_can_go_on
      (need (all_have_ended lane (entries b)) Merge_is_in_call_order
      (need (same_list (applied b) (wanted lane 0 (entries b))) Merge_is_in_call_order
      (Fine (Book (entries b) (S (open_lane b)) [] (reader_has b))))))
  | Hands i => on b i Results_are_in_call_order (fun before e after =>
      need ((i =? reader_has b) && match gives e with Some _ => true | None => false end) Results_are_in_call_order
      (Fine (Book (entries b) (open_lane b) (applied b) (S (reader_has b)))))
  end.

Fixpoint follow (limit : nat) (b : book) (es : list event) : verdict book :=
  match es with
  | [] => Fine b
  | e :: rest => match next limit b e with Fine c => follow limit c rest | Refused why => Refused why end
  end.

Definition over (b : book) (last : ending) : verdict unit :=
  need (forallb (fun e => is_unplaced e || is_gone e) (entries b)) Some_call_can_go_on
    match last with
    | Stopped => Refused Every_run_ends
    | Was_left None => Fine tt
    | Was_left (Some n) => need (n <=? reader_has b) Every_result_is_handed_over (Fine tt)
    end.

Definition judge (limit calls : nat) (es : list event) (last : ending) : verdict unit :=
  match follow limit (opened calls) es with Fine b => over b last | Refused why => Refused why end.

(** * The judge is the relation *)

Lemma at_index_spec : forall es i before e after,
  at_index i es = Some (before, e, after) <-> es = before ++ e :: after /\ length before = i.
Proof.
  induction es as [|d es IH]; intros i before e after; simpl.
  - split; [discriminate | intros [H _]; destruct before; discriminate].
  - destruct i as [|i].
    + split.
      * intros H; injection H as <- <- <-; auto.
      * intros [H L]. destruct before; [now injection H as -> -> | discriminate].
    + destruct (at_index i es) as [[[b x] a]|] eqn:F.
      * apply IH in F as [-> L]. split.
        -- intros H; injection H as <- <- <-; simpl; auto.
        -- intros [H L']. destruct before as [|y before]; [discriminate|].
           injection H as -> H. injection L' as L'. subst i.
           apply app_split in H as [-> H]; [|congruence]. now injection H as -> ->.
      * split; [discriminate|]. intros [H L]. destruct before as [|y before]; [discriminate|].
        injection H as -> H. injection L as L.
        assert (X : at_index i es = Some (before, e, after)) by (apply IH; auto). congruence.
Qed.

Lemma is_in_time_spec : forall cs later, is_in_time cs later = true <-> in_time cs later.
Proof.
  intros cs later. unfold is_in_time, in_time. rewrite forallb_forall. split; intros H d I.
  - intros B. specialize (H d I). rewrite B in H. now apply negb_true_iff in H.
  - specialize (H d I). destruct (begun d); [|reflexivity]. now rewrite (H eq_refl).
Qed.

Lemma is_gone_spec : forall e, is_gone e = true <-> stage_of e = Gone.
Proof. intros e; unfold is_gone; destruct (stage_of e); split; congruence. Qed.

Lemma is_first_in_line_spec : forall earlier e, is_first_in_line earlier e = true <-> first_in_line earlier e.
Proof.
  intros earlier e. unfold is_first_in_line, first_in_line. rewrite forallb_forall. split; intros H d I.
  - intros C. specialize (H d I). rewrite C in H. now apply is_gone_spec.
  - specialize (H d I). destruct (conflicts (holds d) (holds e)); [|reflexivity].
    simpl. apply is_gone_spec. auto.
Qed.

Lemma same_list_spec : forall a b, same_list a b = true <-> a = b.
Proof.
  induction a as [|[x y] a IH]; intros [|[u v] b]; simpl; try (split; congruence).
  unfold pair_eqb. simpl. rewrite !andb_true_iff, !Nat.eqb_eq, IH. split.
  - intros [[-> ->] ->]; reflexivity.
  - intros H; injection H as -> -> ->; auto.
Qed.

(** A lane may be merged when all its calls have ended. *)
Lemma all_have_ended_spec : forall lane es,
  all_have_ended lane es = true <-> (forall e, In e es -> is_member lane e = true -> stage_of e = Gone).
Proof.
  intros lane es. unfold all_have_ended. rewrite forallb_forall. split; intros H e I.
  - intros M. specialize (H e I). rewrite M in H. now apply is_gone_spec.
  - specialize (H e I). destruct (is_member lane e); [|reflexivity]. simpl. apply is_gone_spec. auto.
Qed.

Lemma ended_calls_wait_not : forall lane es,
  (forall e, In e es -> is_member lane e = true -> stage_of e = Gone) -> none_waits lane es = true.
Proof.
  intros lane es H. apply forallb_forall. intros e I. specialize (H e I).
  destruct (is_member lane e); [|reflexivity]. unfold is_awaiting, is_queued. now rewrite (H eq_refl).
Qed.

Ltac look :=
  match goal with
  | H : on ?b ?i _ _ = Fine _ |- _ =>
      unfold on in H; destruct (at_index i (entries b)) as [[[before e] after]|] eqn:At; [|discriminate];
      apply at_index_spec in At as [At <-]
  end.
Ltac needed :=
  match goal with H : need ?c _ _ = Fine _ |- _ => unfold need at 1 in H; destruct c eqn:?; [|discriminate] end.
Ltac booleans :=
  repeat match goal with
  | H : _ && _ = true |- _ => apply andb_true_iff in H as [? ?]
  | H : (_ =? _) = true |- _ => apply Nat.eqb_eq in H
  | H : (_ <? _) = true |- _ => apply Nat.ltb_lt in H
  | H : (_ <=? _) = true |- _ => apply Nat.leb_le in H
  | H : is_in_time _ _ = true |- _ => apply is_in_time_spec in H
  | H : is_first_in_line _ _ = true |- _ => apply is_first_in_line_spec in H
  | H : is_gone _ = true |- _ => apply is_gone_spec in H
  | H : same_list _ _ = true |- _ => apply same_list_spec in H
  end.
Ltac stages :=
  unfold is_unplaced, is_awaiting, is_queued, is_working, is_gone in *;
  match goal with |- context [stage_of ?e] => destruct (stage_of e) eqn:?; simpl in *; auto; discriminate end.

Lemma next_is_allowed : forall limit b ev c, next limit b ev = Fine c -> allowed limit b ev c.
Proof.
  intros limit b [i lane cs|i lane cs|i|i|i|i n|lane i p|lane|i] c H; simpl in H; try look; repeat needed;
    injection H as <-; booleans; subst.
  - constructor; auto. stages.
  - apply Has_takes; auto. stages.
  - constructor; auto. stages.
  - constructor; auto. stages.
  - constructor; auto; stages.
  - constructor; auto.
  - eapply Has_applies; eauto. apply forallb_forall. assumption.
  - constructor; [|assumption]. now apply all_have_ended_spec.
  - econstructor; eauto. destruct (gives e); discriminate.
Qed.

Lemma allowed_is_next : forall limit b ev c, allowed limit b ev c -> next limit b ev = Fine c.
Proof.
  intros limit b ev c A.
  assert (X : forall before e after, entries b = before ++ e :: after ->
    at_index (length before) (entries b) = Some (before, e, after)) by (intros; apply at_index_spec; auto).
  destruct A; simpl; unfold on, need; try (erewrite X by eassumption).
  - unfold is_unplaced. rewrite H0, Nat.eqb_refl. now rewrite (proj2 (is_in_time_spec _ _) H1).
  - replace (is_unplaced e || is_awaiting e) with true.
    + rewrite Nat.eqb_refl. now rewrite (proj2 (is_in_time_spec _ _) H1).
    + unfold is_unplaced, is_awaiting. destruct H0 as [-> | ->]; reflexivity.
  - unfold is_queued. rewrite H0, (proj2 (is_first_in_line_spec _ _) H1), (proj2 (Nat.ltb_lt _ _) H2). reflexivity.
  - unfold is_working. now rewrite H0.
  - unfold is_unplaced, is_gone. destruct (stage_of e); try contradiction; reflexivity.
  - now rewrite (proj2 (Nat.leb_le _ _) H0).
  - rewrite Nat.eqb_refl, H0, (proj2 (is_gone_spec _) H1). simpl.
    now rewrite (proj2 (forallb_forall _ _) H2).
  - rewrite Nat.eqb_refl, (ended_calls_wait_not _ _ H), (proj2 (all_have_ended_spec _ _) H).
    now rewrite (proj2 (same_list_spec _ _) H0).
  - rewrite H0, Nat.eqb_refl. destruct (gives e); [reflexivity | contradiction].
Qed.

Lemma follow_is_steps : forall limit es b c, follow limit b es = Fine c <-> steps limit b es c.
Proof.
  intros limit es. induction es as [|e es IH]; intros b c; simpl; split; intros H.
  - injection H as <-. constructor.
  - inversion H; subst. reflexivity.
  - destruct (next limit b e) as [d|] eqn:N; [|discriminate].
    econstructor; [eapply next_is_allowed; eauto|]. now apply IH.
  - inversion H; subst. rewrite (allowed_is_next _ _ _ _ H3). now apply IH.
Qed.

Lemma over_is_may_end : forall b last, over b last = Fine tt <-> may_end b last.
Proof.
  intros b last. unfold over, may_end, need.
  assert (G : forallb (fun e => is_unplaced e || is_gone e) (entries b) = true <->
    forall e, In e (entries b) -> stage_of e = Unplaced \/ stage_of e = Gone).
  { rewrite forallb_forall. unfold is_unplaced, is_gone. split; intros H e I; specialize (H e I).
    - destruct (stage_of e); auto; discriminate.
    - destruct H as [-> | ->]; reflexivity. }
  split.
  - destruct (forallb _ _); [|discriminate]. intros H. split; [now apply G|].
    destruct last as [[n|]|]; [| exists None; auto | discriminate].
    destruct (n <=? reader_has b) eqn:L; [|discriminate]. apply Nat.leb_le in L. exists (Some n). auto.
  - intros [H (n & -> & L)]. rewrite (proj2 G H). destruct n; [|reflexivity].
    apply Nat.leb_le in L. now rewrite L.
Qed.

(** The judge accepts a trace if, and only if, the relation has steps for it to an end. *)
Theorem judge_is_the_relation : forall limit calls es last,
  judge limit calls es last = Fine tt <-> exists b, steps limit (opened calls) es b /\ may_end b last.
Proof.
  intros limit calls es last. unfold judge. split.
  - destruct (follow limit (opened calls) es) as [b|] eqn:F; [|discriminate]. intros H.
    exists b. split; [now apply follow_is_steps | now apply over_is_may_end].
  - intros (b & S & M). apply follow_is_steps in S. rewrite S. now apply over_is_may_end.
Qed.

(** * An accepted trace is a run of the model *)

(** A call of the model for a call of the trace: it has the claims of [final], which is what the trace makes of it in
    the end, and the status that it has [now].  A trace shows no accesses, so its program has none. *)
Definition status_of (p : stage) : status := match p with Working => Running | Gone => Ended | _ => Waiting end.

Definition seen (final now : entry) : call :=
  Call (holds final) (Return 0) 0 (Return 0) (status_of (stage_of now)).

Fixpoint view (final now : list entry) : list call :=
  match final, now with f :: fs, n :: ns => seen f n :: view fs ns | _, _ => [] end.

Lemma view_app : forall fs gs ns ms, length fs = length ns -> view (fs ++ gs) (ns ++ ms) = view fs ns ++ view gs ms.
Proof. induction fs; intros gs [|n ns] ms L; simpl in *; try discriminate; f_equal; auto. Qed.

Lemma view_here : forall fs f gs ns n ms,
  length fs = length ns -> view (fs ++ f :: gs) (ns ++ n :: ms) = view fs ns ++ seen f n :: view gs ms.
Proof. intros. now rewrite view_app. Qed.

Lemma view_running : forall fs ns, length fs = length ns -> running (view fs ns) = working ns.
Proof.
  unfold running, working. induction fs as [|f fs IH]; intros [|n ns] L; simpl in *; try discriminate; [reflexivity|].
  injection L as L. specialize (IH ns L). unfold is_running, is_working, seen, status_of in *. simpl.
  destruct (stage_of n); simpl; auto.
Qed.

Lemma in_view : forall fs ns c, In c (view fs ns) ->
  exists k f n, nth_error fs k = Some f /\ nth_error ns k = Some n /\ c = seen f n.
Proof.
  induction fs as [|f fs IH]; intros [|n ns] c I; simpl in I; try contradiction. destruct I as [<-|I].
  - exists 0, f, n. auto.
  - destruct (IH ns c I) as (k & g & m & F & N & E). exists (S k), g, m. auto.
Qed.

Lemma split_as : forall (before : list entry) e after (us : list entry),
  length us = length (before ++ e :: after) ->
  exists fs f gs, us = fs ++ f :: gs /\ length fs = length before /\ length gs = length after.
Proof.
  induction before as [|b before IH]; intros e after [|u us] L; simpl in *; try discriminate; injection L as L.
  - exists [], u, us. auto.
  - destruct (IH e after us L) as (fs & f & gs & -> & L1 & L2). exists (u :: fs), f, gs. simpl. auto.
Qed.

Lemma nth_here : forall (before : list entry) x after, nth_error (before ++ x :: after) (length before) = Some x.
Proof. induction before; simpl; auto. Qed.

Lemma nth_there : forall (before : list entry) x y after i,
  i <> length before -> nth_error (before ++ x :: after) i = nth_error (before ++ y :: after) i.
Proof.
  induction before as [|b before IH]; intros x y after [|i] N; simpl in *; try reflexivity; [congruence|].
  apply IH. congruence.
Qed.

(** A call that knows its claims. *)
Definition knows (e : entry) : Prop := status_of (stage_of e) <> Waiting \/ stage_of e = Queued.

(** What one event does to the entries: nothing, or it replaces one. *)
Inductive replaces : list entry -> list entry -> Prop :=
| Replaces_none : forall es, replaces es es
| Replaces_one : forall before e after e',
    (* A call that knows its claims keeps them, *)
    (knows e -> holds e' = holds e /\ knows e' /\ (begun e = true -> begun e' = true)) ->
    (* and one that has new claims has no conflict with later calls which have begun. *)
    (holds e' = holds e \/ in_time (holds e') after) ->
    replaces (before ++ e :: after) (before ++ e' :: after).

Lemma allowed_replaces : forall limit b ev c, allowed limit b ev c -> replaces (entries b) (entries c).
Proof.
  intros limit b ev c A. destruct A; simpl; try rewrite H; try constructor; unfold knows; simpl; auto.
  - rewrite H0. simpl. intros [X|X]; congruence.
  - destruct H0 as [X|X]; rewrite X; simpl; intros [Y|Y]; congruence.
  - intros _. repeat split; auto. left. discriminate.
  - intros _. repeat split; auto. left. discriminate.
Qed.

Lemma replaces_length : forall es fs, replaces es fs -> length fs = length es.
Proof. intros es fs R. destruct R; [reflexivity|]. now rewrite !app_length. Qed.

Lemma knows_on : forall es fs i e, replaces es fs -> nth_error es i = Some e -> knows e ->
  exists f, nth_error fs i = Some f /\ knows f /\ holds f = holds e /\ (begun e = true -> begun f = true).
Proof.
  intros es fs i e R N K. destruct R as [|before x after y C _]; [eauto 6|].
  destruct (Nat.eq_dec i (length before)) as [->|D].
  - rewrite nth_here in N. injection N as ->. rewrite nth_here. destruct (C K) as (H & K' & B). eauto 6.
  - rewrite (nth_there before x y) in N by exact D. eauto 6.
Qed.

Lemma claims_back : forall es fs i f, replaces es fs -> nth_error fs i = Some f ->
  (exists e, nth_error es i = Some e /\ holds e = holds f) \/
  (forall j d, i < j -> nth_error es j = Some d -> begun d = true -> conflicts (holds f) (holds d) = false).
Proof.
  intros es fs i f R N. destruct R as [|before x after y _ T]; [eauto|].
  destruct (Nat.eq_dec i (length before)) as [->|D].
  - rewrite nth_here in N. injection N as ->. destruct T as [H|T].
    + left. exists x. rewrite nth_here. auto.
    + right. intros j d L Nj B. apply T; [|exact B].
      rewrite nth_error_app2 in Nj by lia. replace (j - length before) with (S (j - S (length before))) in Nj by lia.
      simpl in Nj. eapply nth_error_In. exact Nj.
  - left. rewrite <- (nth_there before x y) in N by exact D. eauto.
Qed.

Lemma steps_length : forall limit b es u, steps limit b es u -> length (entries u) = length (entries b).
Proof.
  intros limit b es u S. induction S as [|b e c es d A S IH]; [reflexivity|].
  rewrite IH. eapply replaces_length, allowed_replaces, A.
Qed.

Lemma knows_for_good : forall limit b es u, steps limit b es u -> forall i e,
  nth_error (entries b) i = Some e -> knows e -> exists f, nth_error (entries u) i = Some f /\ holds f = holds e.
Proof.
  intros limit b es u S. induction S as [|b ev c es d A S IH]; intros i e N K; [eauto|].
  destruct (knows_on _ _ _ _ (allowed_replaces _ _ _ _ A) N K) as (f & Nf & Kf & H & _).
  destruct (IH i f Nf Kf) as (g & Ng & Hg). exists g. split; [exact Ng | congruence].
Qed.

(** A claim that conflicts with what a later call has begun was there before that call began. *)
Lemma conflicts_were_there : forall limit c es u, steps limit c es u -> forall i j d f,
  nth_error (entries c) j = Some d -> knows d -> begun d = true -> i < j ->
  nth_error (entries u) i = Some f -> conflicts (holds f) (holds d) = true ->
  exists x, nth_error (entries c) i = Some x /\ holds x = holds f.
Proof.
  intros limit c es u S. induction S as [|b ev c es u A S IH]; intros i j d f Nd K B L Nf C; [eauto|].
  pose proof (allowed_replaces _ _ _ _ A) as R.
  destruct (knows_on _ _ _ _ R Nd K) as (d' & Nd' & K' & H & B').
  destruct (IH i j d' f Nd' K' (B' B) L Nf) as (x & Nx & Hx); [congruence|].
  destruct (claims_back _ _ _ _ R Nx) as [(y & Ny & Hy)|T].
  - exists y. split; [exact Ny | congruence].
  - rewrite <- Hx, (T j d L Nd B) in C. discriminate.
Qed.

Definition never_pauses (es : list event) : Prop := forall i, ~ In (Pauses i) es.

Lemma steps_are_runs : forall limit b es u m, steps limit b es u -> never_pauses es ->
  run limit in_call_order (view (entries u) (entries b), m) (view (entries u) (entries u), m).
Proof.
  intros limit b es u m S. induction S as [|b ev c es u A S IH]; intros P; [apply Nothing|].
  specialize (IH (fun i I => P i (or_intror I))).
  pose proof (steps_length _ _ _ _ S) as Len. pose proof (replaces_length _ _ (allowed_replaces _ _ _ _ A)) as Len'.
  assert (Same : forall before e e' after, entries b = before ++ e :: after -> entries c = before ++ e' :: after ->
    status_of (stage_of e') = status_of (stage_of e) -> view (entries u) (entries c) = view (entries u) (entries b)).
  { intros before e e' after Eb Ec E. rewrite Eb, Ec in *.
    destruct (split_as before e after (entries u)) as (fs & f & gs & -> & L1 & L2); [congruence|].
    rewrite !view_here by exact L1. unfold seen. now rewrite E. }
  destruct A.
  - erewrite <- Same; [exact IH | eassumption | reflexivity | simpl; now rewrite H0].
  - erewrite <- Same; [exact IH | eassumption | reflexivity | simpl; destruct H0 as [-> | ->]; reflexivity].
  - (* Starts *)
    rewrite H in *. simpl in *.
    destruct (split_as before e after (entries u)) as (fs & f & gs & U & L1 & L2); [congruence|].
    eapply first; [|exact IH]. rewrite U. rewrite !view_here by exact L1.
    change (seen f (set_off e)) with (started (seen f e)). apply Start.
    + unfold seen. simpl. now rewrite H0.
    + intros x I Cx. destruct (in_view _ _ _ I) as (k & g & n & Nf & Nn & ->). simpl in *.
      assert (Lk : k < length before) by (rewrite <- L1; apply nth_error_Some; congruence).
      destruct (knows_for_good _ _ _ _ S (length before) (set_off e)) as (f' & Nf' & Hf).
      { apply nth_here. } { left. discriminate. }
      rewrite U, <- L1, nth_here in Nf'. injection Nf' as <-. simpl in Hf.
      destruct (conflicts_were_there _ _ _ _ S k (length before) (set_off e) g) as (y & Ny & Hy); simpl.
      { apply nth_here. } { left. discriminate. } { reflexivity. } { exact Lk. }
      { rewrite U, nth_error_app1 by lia. exact Nf. } { congruence. }
      simpl in Ny. rewrite nth_error_app1 in Ny by exact Lk. rewrite Nn in Ny. injection Ny as <-.
      rewrite (H1 n); [reflexivity | eapply nth_error_In; eauto | congruence].
    + rewrite <- view_here by exact L1. rewrite view_running; [exact H2|]. rewrite <- U. congruence.
  - exfalso. eapply P. left. reflexivity.
  - (* Ends *)
    rewrite H in *. simpl in *.
    destruct (split_as before e after (entries u)) as (fs & f & gs & U & L1 & L2); [congruence|].
    eapply first; [|exact IH]. rewrite U. rewrite !view_here by exact L1.
    change (seen f (with_stage Gone e)) with (ended (seen f e)).
    destruct (stage_of e) eqn:E; try contradiction.
    + apply Cut. unfold seen. simpl. rewrite E. discriminate.
    + apply Cut. unfold seen. simpl. rewrite E. discriminate.
    + apply (Finish limit in_call_order _ _ _ _ 0); [|reflexivity]. unfold seen. simpl. now rewrite E.
  - erewrite <- Same; [exact IH | eassumption | reflexivity | reflexivity].
  - exact IH.
  - exact IH.
  - exact IH.
Qed.

(** The calls of an accepted trace, with the claims that they have in the end, have a run of the model: it starts with
    all of them submitted, and takes them to where the trace takes them. *)
Theorem accepted_traces_are_runs : forall limit calls es last m,
  judge limit calls es last = Fine tt -> never_pauses es ->
  exists final, length final = calls /\
    run limit in_call_order
      (map (fun e => submitted (holds e) (Return 0)) final, m) (map (fun e => seen e e) final, m) /\
    forall e, In e final -> stage_of e = Unplaced \/ stage_of e = Gone.
Proof.
  intros limit calls es last m J P. apply judge_is_the_relation in J as (b & S & E & _).
  pose proof (steps_length _ _ _ _ S) as L. simpl in L. rewrite repeat_length in L.
  exists (entries b). split; [exact L|]. split; [|exact E].
  pose proof (steps_are_runs _ _ _ _ m S P) as R.
  assert (V : forall fs n, length fs = n ->
    view fs (repeat (Entry [] Unplaced false 0 None) n) = map (fun e => submitted (holds e) (Return 0)) fs).
  { clear. induction fs as [|f fs IH]; intros [|n] L; simpl in *; try discriminate; f_equal; auto. }
  assert (W : forall fs, view fs fs = map (fun e => seen e e) fs).
  { clear. induction fs; simpl; f_equal; auto. }
  simpl in R. rewrite V in R by exact L. now rewrite W in R.
Qed.

(** * Every run of the model is accepted *)

Definition stage_for (s : status) : stage := match s with Waiting => Queued | Running => Working | Ended => Gone end.

Definition mirrors (e : entry) (c : call) : Prop := holds e = claims c /\ stage_of e = stage_for (at_ c).

Lemma steps_snoc : forall limit b es c e d, steps limit b es c -> allowed limit c e d -> steps limit b (es ++ [e]) d.
Proof.
  intros limit b es c e d S A. induction S; simpl; [econstructor; [exact A | constructor] | econstructor; eauto].
Qed.

Lemma steps_app : forall limit b es c fs d, steps limit b es c -> steps limit c fs d -> steps limit b (es ++ fs) d.
Proof. intros limit b es c fs d S T. induction S; simpl; [exact T | econstructor; eauto]. Qed.

(** All take their tickets, one after the other. *)
Lemma all_take : forall limit cs before b,
  all_submitted cs -> entries b = before ++ repeat (Entry [] Unplaced false 0 None) (length cs) ->
  exists es ms, steps limit b es (with_entries b (before ++ ms)) /\ Forall2 mirrors ms cs.
Proof.
  intros limit cs. induction cs as [|c cs IH]; intros before b Su E.
  - exists [], []. simpl in E. split; [|constructor]. rewrite <- E. destruct b. constructor.
  - simpl in E. set (e := placed Queued (open_lane b) (claims c) (Entry [] Unplaced false 0 None)).
    assert (A := Has_takes limit b before _ _ (claims c) E (or_introl eq_refl)).
    destruct (IH (before ++ [e]) (with_entries b (before ++ e :: repeat (Entry [] Unplaced false 0 None) (length cs))))
      as (es & ms & S & M).
    + intros d I. apply Su. right. exact I.
    + simpl. now rewrite <- app_assoc.
    + exists (Takes (length before) (open_lane b) (claims c) :: es), (e :: ms). split.
      * econstructor.
        -- apply A. intros d I B. apply repeat_spec in I. subst d. discriminate.
        -- rewrite <- app_assoc in S. exact S.
      * constructor; [|exact M]. split; [reflexivity|].
        simpl. destruct (Su c (or_introl eq_refl)) as (_ & _ & ->). reflexivity.
Qed.

Lemma mirrors_working : forall es cs, Forall2 mirrors es cs -> working es = running cs.
Proof.
  intros es cs M. unfold working, running. induction M as [|e c es cs [_ P] M IH]; [reflexivity|]. simpl.
  unfold is_working at 1, is_running at 1. rewrite P. destruct (at_ c); simpl; auto.
Qed.

Lemma mirrors_middle : forall es before c after, Forall2 mirrors es (before ++ c :: after) ->
  exists bs e rs, es = bs ++ e :: rs /\ Forall2 mirrors bs before /\ mirrors e c /\ Forall2 mirrors rs after.
Proof.
  intros es before c after M. apply Forall2_app_inv_r in M as (bs & rest & Mb & Mr & ->).
  inversion Mr; subst. eauto 8.
Qed.

Lemma mirrors_again : forall bs before e c rs after,
  Forall2 mirrors bs before -> mirrors e c -> Forall2 mirrors rs after ->
  Forall2 mirrors (bs ++ e :: rs) (before ++ c :: after).
Proof. intros. apply Forall2_app; [assumption | now constructor]. Qed.

Lemma run_has_steps : forall limit b es0 b0 s t,
  run limit in_call_order s t -> steps limit b es0 b0 -> Forall2 mirrors (entries b0) (fst s) ->
  exists es b', steps limit b es b' /\ Forall2 mirrors (entries b') (fst t).
Proof.
  intros limit b es0 b0 s t R S0 M0. induction R as [s|s [cs m] u R IH St]; [eauto|].
  destruct (IH M0) as (es & b' & S & M). clear IH R S0 M0. simpl in M.
  inversion St as [before c after n W G L E1 E2 | before c after n p' n' W _ _ E1 E2
                  | before c after n r W _ E1 E2 | before c after n W E1 E2]; subst; simpl;
    destruct (mirrors_middle _ _ _ _ M) as (bs & e & rs & E & Mb & [Hh Hp] & Mr).
  - exists (es ++ [Starts (length bs)]), (with_entries b' (bs ++ set_off e :: rs)). split.
    + eapply steps_snoc; [exact S|]. apply Has_starts; [exact E | now rewrite Hp, W | |].
      * intros d I C. apply in_split in I as (l1 & l2 & ->).
        apply Forall2_app_inv_l in Mb as (k1 & k2 & M1 & M2 & ->). inversion M2 as [|? x ? ? [Hx Px]]; subst.
        rewrite Px, (G x); [reflexivity | apply in_or_app; right; left; reflexivity | congruence].
      * rewrite (mirrors_working _ _ M). exact L.
    + apply mirrors_again; auto. split; [exact Hh | reflexivity].
  - exists es, b'. split; [exact S|]. rewrite E. apply mirrors_again; auto.
    split; [exact Hh|]. simpl. now rewrite Hp, W.
  - exists (es ++ [Ends (length bs)]), (with_entries b' (bs ++ with_stage Gone e :: rs)). split.
    + eapply steps_snoc; [exact S|]. apply Has_ends; [exact E | |]; rewrite Hp, W; discriminate.
    + apply mirrors_again; auto. split; [exact Hh | reflexivity].
  - exists (es ++ [Ends (length bs)]), (with_entries b' (bs ++ with_stage Gone e :: rs)). split.
    + eapply steps_snoc; [exact S|]. apply Has_ends; [exact E | |]; rewrite Hp; destruct (at_ c); simpl; congruence.
    + apply mirrors_again; auto. split; [exact Hh | reflexivity].
Qed.

(** Every complete run of the model has a trace which the judge accepts. *)
Theorem runs_are_accepted : forall limit cs m cs' m',
  all_submitted cs -> run limit in_call_order (cs, m) (cs', m') -> complete cs' ->
  exists es, judge limit (length cs) es (Was_left None) = Fine tt.
Proof.
  intros limit cs m cs' m' Su R C.
  destruct (all_take limit cs [] (opened (length cs)) Su eq_refl) as (es0 & ms & S0 & M0).
  destruct (run_has_steps limit _ _ _ _ _ R S0 M0) as (es & b & S & M). simpl in M.
  exists es. apply judge_is_the_relation. exists b. split; [exact S|]. split; [|exists None; auto].
  intros e I. right. apply in_split in I as (l1 & l2 & E). rewrite E in M.
  apply Forall2_app_inv_l in M as (k1 & k2 & _ & M2 & ->). inversion M2 as [|? x ? ? [_ P]]; subst.
  rewrite P, (C x); [reflexivity | apply in_or_app; right; left; reflexivity].
Qed.

(** * The reader *)

Fixpoint handed_in (es : list event) : list nat :=
  match es with [] => [] | Hands i :: rest => i :: handed_in rest | _ :: rest => handed_in rest end.

(** What a trace hands to its reader is a prefix of the calls, in call order. *)
Theorem the_reader_has_a_prefix : forall limit calls es b,
  steps limit (opened calls) es b -> handed_in es = seq 0 (reader_has b).
Proof.
  intros limit calls es b St.
  enough (G : forall c, steps limit c es b ->
    reader_has c <= reader_has b /\ handed_in es = seq (reader_has c) (reader_has b - reader_has c)).
  { destruct (G _ St) as [_ H]. simpl in H. now rewrite Nat.sub_0_r in H. }
  clear St. intros c St. induction St as [b|b ev c es d A St [L H]]; [rewrite Nat.sub_diag; auto|].
  destruct A; simpl in *; auto.
  split; [lia|]. rewrite H, H1.
  replace (reader_has d - reader_has b) with (S (reader_has d - S (reader_has b))) by lia. reflexivity.
Qed.

(** * No axiom, and the judge in OCaml *)

Print Assumptions judge_is_the_relation.
Print Assumptions accepted_traces_are_runs.
Print Assumptions runs_are_accepted.
Print Assumptions the_reader_has_a_prefix.


Extraction "judged" judge.
